package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// An ownWriteFilter drops the watch events of a reconcile's own writes: an event whose
// resource version is that of the answer to an apply tells the reconcile nothing new, as it
// has stepped again since. Without the filter, each reconcile that writes an object causes
// another one. Its zero value is ready for use.
type ownWriteFilter struct {
	mu     sync.Mutex
	writes map[ownWriteKey]*ownWrite
	// reconciles are what the running reconciles of resources have written.
	reconciles map[types.NamespacedName]*written
}

// ownWriteKey is an object and the custom resource that writes it.
type ownWriteKey struct {
	object cluster.Ref
	owner  types.NamespacedName
}

// An ownWrite is what is known of the last write of an object.
type ownWrite struct {
	// running are the writes that are not answered yet.
	running int
	// answer is the version that the last answer had.
	answer string
	// early are the events that came before the answer.
	early []earlyEvent
}

type earlyEvent struct {
	version string
	deliver func()
}

func ownWriteKeyOf(o client.Object) (ownWriteKey, bool) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return ownWriteKey{}, false
	}
	_, owner, ok := ownership.ParseOwner(u.GetAnnotations()[ownership.OwnerAnnotation])
	return ownWriteKey{cluster.RefOf(u).Identity(), owner}, ok
}

// begin notes that an object is being written.
func (e *ownWriteFilter) begin(key ownWriteKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writes == nil {
		e.writes = map[ownWriteKey]*ownWrite{}
	}
	if e.writes[key] == nil {
		e.writes[key] = &ownWrite{}
	}
	e.writes[key].running++
}

// end notes the resource version in the answer of a write, "" for an error, and delivers
// the early events that somebody else has caused.
func (e *ownWriteFilter) end(key ownWriteKey, answer string) {
	e.mu.Lock()
	w := e.writes[key]
	w.running--
	if answer != "" {
		w.answer = answer
	}
	var others []func()
	if w.running == 0 {
		seen := false
		for _, early := range w.early {
			if early.version == w.answer {
				seen = true
				continue
			}
			others = append(others, early.deliver)
		}
		w.early = nil
		if seen || w.answer == "" {
			delete(e.writes, key)
		}
	}
	e.mu.Unlock()
	for _, deliver := range others {
		deliver()
	}
}

// observe delivers an event about an object unless it is that of an own write. An event
// that arrives before the answer of a write is kept until then: only the answer tells.
func (e *ownWriteFilter) observe(o client.Object, deliver func()) {
	key, ok := ownWriteKeyOf(o)
	if ok && e.isOwnWrite(key, o.GetResourceVersion(), deliver) {
		return
	}
	deliver()
}

func (e *ownWriteFilter) isOwnWrite(key ownWriteKey, version string, deliver func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.writes[key]
	switch {
	case w == nil:
		return false
	case w.running > 0:
		w.early = append(w.early, earlyEvent{version, deliver})
		return true
	case w.answer == version:
		delete(e.writes, key)
		return true
	}
	return false
}

// forget drops what is known of an object that is gone.
func (e *ownWriteFilter) forget(o client.Object) {
	key, ok := ownWriteKeyOf(o)
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.writes[key]; ok && w != nil && w.running == 0 {
		delete(e.writes, key)
	}
}

// filterEvents returns a handler without the events of own writes. A resync passes: it
// exists so that everything is looked at now and then.
func (e *ownWriteFilter) filterEvents(inner handler.TypedEventHandler[client.Object, ctrl.Request]) handler.TypedEventHandler[client.Object, ctrl.Request] {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	return handler.TypedFuncs[client.Object, ctrl.Request]{
		CreateFunc: func(ctx context.Context, c event.TypedCreateEvent[client.Object], q queue) {
			if c.IsInInitialList {
				inner.Create(ctx, c, q)
				return
			}
			e.observe(c.Object, func() { inner.Create(ctx, c, q) })
		},
		UpdateFunc: func(ctx context.Context, u event.TypedUpdateEvent[client.Object], q queue) {
			before, after := u.ObjectOld, u.ObjectNew
			changedHands := before.GetAnnotations()[ownership.OwnerAnnotation] != after.GetAnnotations()[ownership.OwnerAnnotation]
			if changedHands || before.GetResourceVersion() == after.GetResourceVersion() {
				inner.Update(ctx, u, q)
				return
			}
			e.observe(after, func() { inner.Update(ctx, u, q) })
		},
		DeleteFunc: func(ctx context.Context, d event.TypedDeleteEvent[client.Object], q queue) {
			e.forget(d.Object)
			inner.Delete(ctx, d, q)
		},
		GenericFunc: func(ctx context.Context, g event.TypedGenericEvent[client.Object], q queue) { inner.Generic(ctx, g, q) },
	}
}

// A filteredCluster tells the filter of each apply.
type filteredCluster struct {
	cluster.Cluster
	filter *ownWriteFilter
}

// Apply implements cluster.Cluster.
func (c filteredCluster) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	key, ours := ownWriteKeyOf(object)
	if !ours {
		return c.Cluster.Apply(ctx, object)
	}
	answer := ""
	c.filter.begin(key)
	defer func() { c.filter.end(key, answer) }()
	out, err := c.Cluster.Apply(ctx, object)
	if err == nil {
		answer = out.GetResourceVersion()
		c.filter.wrote(key, object.GetAnnotations()[ownership.AppliedMark])
	}
	return out, err
}
