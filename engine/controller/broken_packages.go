package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// A brokenPackage is a package no version of which is served, as its files are wrong.
type brokenPackage struct {
	name, fault string
	// sought says that its kinds were looked for.
	sought bool
}

// Broken says that the package in a folder is wrong, so that no version of it is served,
// and what is wrong with it. The resources of the kinds that its name has on the cluster say
// so in their status. It is over when a package of their kind is served.
func (m *Manager) Broken(folder, name, fault string) {
	s := m.unserved
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.broken[folder]
	if b == nil {
		b = &brokenPackage{name: name}
		s.broken[folder] = b
	}
	b.fault = fault
	s.notice()
}

// Mended says that the package in a folder is served. If it had another kind before, the
// resources of that one are told so.
func (m *Manager) Mended(folder, now string) {
	s := m.unserved
	s.mu.Lock()
	defer s.mu.Unlock()
	switch b := s.broken[folder]; {
	case b == nil:
	case b.sought:
		b.fault = "package " + b.name + " has another kind now: " + now
		s.notice()
	default:
		delete(s.broken, folder)
	}
}

// notice makes somebody look at the broken packages.
func (s *unservedTeardown) notice() {
	select {
	case s.changed <- struct{}{}:
	default: // somebody is about to
	}
}

// faultOf returns what is wrong with a package of a name, or "".
func (s *unservedTeardown) faultOf(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, folder := range slices.Sorted(maps.Keys(s.broken)) {
		if b := s.broken[folder]; b.name == name {
			return b.fault
		}
	}
	return ""
}

// followBroken looks at the resources of broken packages until the context ends.
func (s *unservedTeardown) followBroken(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		s.enqueueBroken(ctx)
		var found []packageMissingKind
		s.retry(ctx, func() (err error) { found, err = s.kindsOfBroken(ctx); return err })
		for _, k := range found {
			s.startBroken(ctx, k)
		}
	}
}

// kindsOfBroken returns the kinds of the broken packages that were not looked for yet.
func (s *unservedTeardown) kindsOfBroken(ctx context.Context) ([]packageMissingKind, error) {
	s.mu.Lock()
	names := map[string]bool{}
	for _, b := range s.broken {
		if !b.sought {
			names[b.name] = true
		}
	}
	s.mu.Unlock()
	if len(names) == 0 {
		return nil, nil
	}
	kinds, err := s.kinds(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.broken {
		b.sought = b.sought || names[b.name]
	}
	return slices.DeleteFunc(kinds, func(k packageMissingKind) bool { return !names[k.pkg] || s.outOfScope(k) }), nil
}

// enqueueBroken makes the resources of broken packages be looked at.
func (s *unservedTeardown) enqueueBroken(ctx context.Context) {
	s.mu.Lock()
	watched := slices.Collect(maps.Values(s.watched))
	s.mu.Unlock()
	for _, a := range watched {
		if a.enqueueAll != nil {
			a.enqueueAll(ctx, a.done)
		}
	}
}

// What is known of other processes that may serve a kind.
type servedBy string

const (
	// servedByUnknown: nobody was asked.
	servedByUnknown servedBy = "unknown"
	// servedByAsked: it was asked, and there is no answer yet.
	servedByAsked servedBy = "asked"
	// servedByNobody: nobody has answered.
	servedByNobody servedBy = "nobody"
	// servedByOther: another process has.
	servedByOther servedBy = "other"
)

// brokenReporter says in the status of the resources of one kind that their package is wrong. It
// begins with a question: a process that was started with an earlier version may serve
// them, and knows better. The question is a condition of one resource, which that process
// takes away.
type brokenReporter struct {
	life  *reconcile.Reconciler
	fault func() string
	// elsewhere is called when another process turns out to serve the kind.
	elsewhere func()
	now       func() time.Time

	mu    sync.Mutex
	by    servedBy
	asked types.UID
	until time.Time
	// said are the resources that say so.
	said map[types.NamespacedName]types.UID
	// late are those that had a new generation, when it was noticed, which nobody has acted upon.
	late map[types.NamespacedName]time.Time
}

func newBrokenReporter(l *reconcile.Reconciler, fault func() string, elsewhere func()) *brokenReporter {
	return &brokenReporter{
		life: l, fault: fault, elsewhere: elsewhere, now: time.Now, by: servedByUnknown,
		said: map[types.NamespacedName]types.UID{}, late: map[types.NamespacedName]time.Time{},
	}
}

// reconcile takes one resource that is not being deleted further, and returns when to come again.
func (u *brokenReporter) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	fault := u.fault()
	if fault == "" {
		return 0, nil
	}
	cr, err := u.life.Resources.GetCached(ctx, cluster.Ref{GroupVersionKind: u.life.Kind, Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return 0, err
	}
	if cr == nil {
		u.forget(key)
		return 0, nil
	}
	switch by, again := u.consult(key, cr); by {
	case servedByUnknown:
		return u.ask(ctx, key, cr.GetUID())
	case servedByAsked, servedByOther:
		return again, nil
	case servedByNobody:
	}
	said, err := u.life.ReportPackageBroken(ctx, key, fault)
	if err != nil || !said {
		return 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.said[key] = cr.GetUID()
	return 0, nil
}

// forget drops what is known of a resource that is gone.
func (u *brokenReporter) forget(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.said, key)
	delete(u.late, key)
}

// consult returns who serves a kind as one of its resources has it, and when to come again.
func (u *brokenReporter) consult(key types.NamespacedName, cr *unstructured.Unstructured) (servedBy, time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	disputed := reconcile.Disputed(cr)
	switch {
	case u.by == servedByAsked && !disputed && u.asked == cr.GetUID():
		u.by = servedByOther
		u.elsewhere()
	case u.by == servedByAsked && !u.now().Before(u.until):
		u.by = servedByNobody
	case u.by == servedByNobody && !disputed && u.said[key] == cr.GetUID():
		u.by = servedByUnknown // somebody took back what was said; who serves it answers as well
		clear(u.said)
	}
	switch u.by {
	case servedByAsked:
		return u.by, u.until.Sub(u.now())
	case servedByOther:
		return u.by, u.lag(key, cr)
	case servedByUnknown, servedByNobody:
	}
	return u.by, 0
}

// lag returns when to come again for a resource of which nobody has noticed a new generation
// yet, or 0. If nobody does in time, whoever served it is gone.
func (u *brokenReporter) lag(key types.NamespacedName, cr *unstructured.Unstructured) time.Duration {
	observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	since, late := u.late[key]
	switch now := u.now(); {
	case observed == cr.GetGeneration():
		delete(u.late, key)
		return 0
	case !late:
		u.late[key] = now
		return lagTime
	case now.Sub(since) < lagTime:
		return lagTime - now.Sub(since)
	}
	clear(u.late)
	u.by = servedByUnknown
	return time.Millisecond
}

// ask asks whether another process serves the kind.
func (u *brokenReporter) ask(ctx context.Context, key types.NamespacedName, uid types.UID) (time.Duration, error) {
	u.mu.Lock()
	if u.by != servedByUnknown {
		u.mu.Unlock()
		return time.Millisecond, nil // another resource was quicker
	}
	u.by, u.asked, u.until = servedByAsked, uid, u.now().Add(answerTime)
	u.mu.Unlock()
	asked, err := u.life.AskWhetherServed(ctx, key)
	if asked && err == nil {
		return answerTime, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.by = servedByUnknown // another resource is to ask
	return 0, err
}

// answered lets through that a status does not say any more that nobody serves it.
var answered = predicate.TypedFuncs[client.Object]{
	CreateFunc:  func(event.TypedCreateEvent[client.Object]) bool { return false },
	DeleteFunc:  func(event.TypedDeleteEvent[client.Object]) bool { return false },
	GenericFunc: func(event.TypedGenericEvent[client.Object]) bool { return false },
	UpdateFunc: func(e event.TypedUpdateEvent[client.Object]) bool {
		before, isBefore := e.ObjectOld.(*unstructured.Unstructured)
		after, isAfter := e.ObjectNew.(*unstructured.Unstructured)
		return isBefore && isAfter && reconcile.Disputed(before) && !reconcile.Disputed(after)
	},
}
