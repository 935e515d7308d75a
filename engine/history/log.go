package history

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Key identifies a resource.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// A Log remembers the reconciles of all resources of a process. It is safe for concurrent use.
type Log struct {
	limits  Limits
	now     func() time.Time
	objects Objects

	mu        sync.Mutex
	resources map[Key]*list.Element
	// order has the *resources, the least recently reconciled first.
	order list.List
	// size is what all resources take, and held what the objects take that wait to be compared.
	size, held int
}

// Objects says how a Log reads objects, which a cache may keep in a form of its own.
type Objects struct {
	// Changes returns which fields differ between the two states of an object in an event, and who has changed them.
	Changes func(Event) []Change
	// Size returns how much memory an object takes, in bytes.
	Size func(*unstructured.Unstructured) int
}

// New returns a Log that knows nothing yet.
func New(limits Limits, now func() time.Time, objects Objects) *Log {
	return &Log{limits: limits, now: now, objects: objects, resources: map[Key]*list.Element{}}
}

// ForKind returns the log of the resources of a kind.
func (l *Log) ForKind(kind schema.GroupKind) *KindLog { return &KindLog{l, kind} }

// A KindLog is the part of a Log about the resources of one kind. A nil one notes nothing.
type KindLog struct {
	log  *Log
	kind schema.GroupKind
}

// A resource is what is known of one.
type resource struct {
	key   Key
	uid   types.UID
	since time.Time
	total int64
	// size is what last and the triggers take.
	size int
	// last are the reconciles that have ended, the oldest first.
	last []Reconcile
	// waiting is what has come since a worker got the resource, and taken what had come until then.
	waiting, taken pending
	next           *Timer
	run            *Run
	running        Reconcile
}

// An Event is something that has a resource reconciled. Before and After are an object of a cache, as it was and as it is,
// or nil if nobody needs to know what has changed of it.
type Event struct {
	Trigger
	Before, After *unstructured.Unstructured
}

// at returns what is known of a resource, and makes it the one that was used last.
func (l *Log) at(key Key) *resource {
	if e := l.resources[key]; e != nil {
		l.order.MoveToBack(e)
		return resourceOf(e)
	}
	r := &resource{key: key, since: l.now(), size: resourceSize}
	l.resources[key] = l.order.PushBack(r)
	l.size += r.size
	l.shrink()
	return r
}

// shrink forgets the resources that were reconciled least recently, until the limits hold.
func (l *Log) shrink() {
	for l.order.Len() > 1 && (l.order.Len() > l.limits.Resources || l.size > l.limits.Bytes) {
		l.forget(resourceOf(l.order.Front()).key)
	}
}

func (l *Log) forget(key Key) {
	e := l.resources[key]
	if e == nil {
		return
	}
	r := resourceOf(e)
	l.size -= r.size
	l.held -= r.waiting.held + r.taken.held
	l.order.Remove(e)
	delete(l.resources, key)
}

func resourceOf(e *list.Element) *resource {
	r, _ := e.Value.(*resource)
	return r
}

// grow notes that a resource takes more memory, or less.
func (l *Log) grow(r *resource, by int) {
	r.size += by
	l.size += by
}

func (o *KindLog) keyOf(key types.NamespacedName) Key { return Key{o.kind, key} }

// Note notes an event that enqueues a resource. It compares nothing.
func (o *KindLog) Note(key types.NamespacedName, e Event) {
	if o == nil {
		return
	}
	l := o.log
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time = l.now()
	r := l.at(o.keyOf(key))
	before := r.waiting.size
	l.held += r.waiting.add(e, l.objects.Size, l.limits.Held-l.held)
	l.grow(r, r.waiting.size-before)
	l.shrink()
}

// NoteDequeued notes that a worker takes a resource from the queue. The events noted until now are why it is
// reconciled.
func (o *KindLog) NoteDequeued(key types.NamespacedName) {
	if o == nil {
		return
	}
	l := o.log
	l.mu.Lock()
	defer l.mu.Unlock()
	r, now := l.at(o.keyOf(key)), l.now()
	l.held -= r.taken.held
	l.grow(r, -r.taken.size)
	r.taken, r.waiting = r.waiting, pending{}
	if t := r.next; t != nil && !now.Before(t.Due.Add(-timerTolerance)) {
		r.taken.events = append(r.taken.events, Event{Trigger: Trigger{Cause: t.Cause, Time: now, Count: 1, After: &t.After}})
	}
	r.next = nil
	if len(r.taken.events) == 0 {
		r.taken.events = []Event{{Trigger: Trigger{Cause: Again, Time: now, Count: 1}}}
	}
}

// Begin begins a reconcile of the resource with a UID, and returns its context. It compares the objects whose changes
// have triggered it.
func (o *KindLog) Begin(ctx context.Context, key types.NamespacedName, uid types.UID) (context.Context, *Run) {
	if o == nil {
		return ctx, nil
	}
	l := o.log
	taken := o.take(key, uid)
	triggers := taken.triggers(l.objects.Changes)
	l.mu.Lock()
	defer l.mu.Unlock()
	run := &Run{of: o, key: o.keyOf(key), began: l.now()}
	r := l.at(run.key)
	r.run = run
	r.running = Reconcile{Began: run.began, Times: 1, Result: Running, Triggers: triggers, MoreTriggers: taken.more}
	return context.WithValue(ctx, runKey{}, run), run
}

// take returns what has triggered a reconcile. What is known of another resource of that name is forgotten.
func (o *KindLog) take(key types.NamespacedName, uid types.UID) pending {
	l := o.log
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.at(o.keyOf(key))
	taken, waiting := r.taken, r.waiting
	if r.uid != "" && uid != "" && r.uid != uid {
		r.waiting = pending{} // these go on with the new one
		l.forget(r.key)
		r = l.at(r.key)
		r.waiting = waiting
		l.held += waiting.held
		l.grow(r, waiting.size)
	} else {
		l.held -= taken.held
		l.grow(r, -taken.size)
	}
	if uid != "" {
		r.uid = uid
	}
	r.taken = pending{}
	return taken
}

// End notes how a reconcile has ended, and when the resource is reconciled again without an event, 0 for never. A
// resource without a UID is gone, and nothing of it is kept.
func (r *Run) End(result Result, again time.Duration, uid types.UID) {
	if r == nil {
		return
	}
	l, requests := r.of.log, r.counted()
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.resources[r.key]
	if e == nil || resourceOf(e).run != r {
		return // it was forgotten
	}
	if uid == "" {
		l.forget(r.key)
		return
	}
	known := resourceOf(e)
	one := known.running
	one.Result, one.Requests, one.Took = result, requests, &metav1.Duration{Duration: l.now().Sub(r.began)}
	known.run, known.running, known.total = nil, Reconcile{}, known.total+1
	l.keep(known, one)
	known.next = nil
	if again > 0 {
		known.next = &Timer{TimerDue, metav1.Duration{Duration: again}, l.now().Add(again)}
	}
	l.shrink()
}

// keep adds a reconcile that has ended to the last ones.
func (l *Log) keep(r *resource, one Reconcile) {
	if n := len(r.last); n > 0 && alike(r.last[n-1], one) {
		one.Times += r.last[n-1].Times
		l.grow(r, -sizeOfReconcile(r.last[n-1]))
		r.last = r.last[:n-1]
	}
	r.last = append(r.last, one)
	l.grow(r, sizeOfReconcile(one))
	if len(r.last) > l.limits.Reconciles {
		l.grow(r, -sizeOfReconcile(r.last[0]))
		r.last = append(r.last[:0:0], r.last[1:]...)
	}
}

// alike reports whether two reconciles were triggered by time alone, and had the same result and cost.
func alike(a, b Reconcile) bool {
	return a.Result == b.Result && slices.Equal(a.Requests, b.Requests) && len(a.Triggers) == 1 && len(b.Triggers) == 1 &&
		a.Triggers[0].Cause == b.Triggers[0].Cause && byTime(a.Triggers[0].Cause)
}

// byTime reports whether nobody has done what triggers a reconcile.
func byTime(c Cause) bool {
	switch c {
	case TimerDue, Retry, Resync:
		return true
	case Start, Resource, Object, Input, Patch, Package, Readable, Permitted, Again:
	}
	return false
}

// Retry notes when a resource is reconciled again whose last reconcile has ended with an error.
func (o *KindLog) Retry(key types.NamespacedName, after time.Duration) {
	if o == nil {
		return
	}
	l := o.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.resources[o.keyOf(key)]; e != nil {
		resourceOf(e).next = &Timer{Retry, metav1.Duration{Duration: after}, l.now().Add(after)}
	}
}

// Forget forgets all resources of the kind, whose controller has ended.
func (o *KindLog) Forget() {
	if o == nil {
		return
	}
	o.log.mu.Lock()
	defer o.log.mu.Unlock()
	for key := range o.log.resources {
		if key.GroupKind == o.kind {
			o.log.forget(key)
		}
	}
}

// Report returns what is known of the resource with a UID, without its watches, and false if nothing is.
func (o *KindLog) Report(key types.NamespacedName, uid types.UID) (Report, bool) {
	l := o.log
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.resources[o.keyOf(key)]
	if e == nil || uid == "" || resourceOf(e).uid != "" && resourceOf(e).uid != uid {
		return Report{}, false
	}
	r := resourceOf(e)
	out := Report{Since: r.since, Total: r.total, Next: r.next, Waiting: r.waiting.triggers(nil)}
	if r.run != nil {
		one := r.running
		one.Requests = r.run.counted()
		out.Reconciles = append(out.Reconciles, one)
	}
	for i := range r.last {
		out.Reconciles = append(out.Reconciles, r.last[len(r.last)-1-i])
	}
	return out, true
}
