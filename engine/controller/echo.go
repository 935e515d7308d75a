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

// echoes knows the events that say no more than what a reconcile has written itself:
// it was answered with the same version of the object, and has looked at everything
// once more since. Without it, each reconcile that writes something causes another one.
// Its zero value is ready for use.
type echoes struct {
	mu     sync.Mutex
	writes map[echoKey]*ownWrite
	// reconciles are what the running reconciles of resources have written.
	reconciles map[types.NamespacedName]*written
}

// echoKey is an object and the custom resource that writes it.
type echoKey struct {
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

func keyOfOwn(o client.Object) (echoKey, bool) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return echoKey{}, false
	}
	_, owner, ok := ownership.ParseOwner(u.GetAnnotations()[ownership.OwnerAnnotation])
	return echoKey{cluster.RefOf(u).Identity(), owner}, ok
}

// begin notes that an object is being written.
func (e *echoes) begin(key echoKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writes == nil {
		e.writes = map[echoKey]*ownWrite{}
	}
	if e.writes[key] == nil {
		e.writes[key] = &ownWrite{}
	}
	e.writes[key].running++
}

// end notes the version that a write was answered with, "" for an error, and delivers
// the early events that were of something else.
func (e *echoes) end(key echoKey, answer string) {
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

// observe delivers an event about an object unless it is the echo of a write. What
// comes while one is not answered yet is kept until it is.
func (e *echoes) observe(o client.Object, deliver func()) {
	key, ok := keyOfOwn(o)
	if ok && e.absorbs(key, o.GetResourceVersion(), deliver) {
		return
	}
	deliver()
}

func (e *echoes) absorbs(key echoKey, version string, deliver func()) bool {
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
func (e *echoes) forget(o client.Object) {
	key, ok := keyOfOwn(o)
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.writes[key]; ok && w != nil && w.running == 0 {
		delete(e.writes, key)
	}
}

// without returns a handler of events that leaves the echoes out. What an informer
// repeats is none: it is there so that everything is looked at now and then.
func (e *echoes) without(inner handler.TypedEventHandler[client.Object, ctrl.Request]) handler.TypedEventHandler[client.Object, ctrl.Request] {
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

// echoing is a cluster whose applies are known to the echoes.
type echoing struct {
	cluster.Cluster
	echoes *echoes
}

// Apply implements cluster.Cluster.
func (c echoing) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	key, ours := keyOfOwn(object)
	if !ours {
		return c.Cluster.Apply(ctx, object)
	}
	answer := ""
	c.echoes.begin(key)
	defer func() { c.echoes.end(key, answer) }()
	out, err := c.Cluster.Apply(ctx, object)
	if err == nil {
		answer = out.GetResourceVersion()
		c.echoes.wrote(key, object.GetAnnotations()[ownership.AppliedMark])
	}
	return out, err
}
