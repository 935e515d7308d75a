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
)

// A brokenPackage is a package without a version that can be loaded, because its files are wrong.
type brokenPackage struct {
	name, fault string
	// kindsFound says that the kinds of its name were looked up.
	kindsFound bool
}

// ReportBroken notes that the package in a folder is broken, so that no version of it is loaded, and what is wrong
// with it. The resources of the kinds that definitions assign to its name report that in their status, until a
// package of their kind is loaded.
func (m *Manager) ReportBroken(folder, name, fault string) {
	s := m.packageMissing
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.broken[folder]
	if b == nil {
		b = &brokenPackage{name: name}
		s.broken[folder] = b
	}
	b.fault = fault
	wake(s.changed)
}

// ReportRepaired says that the package in a folder is loaded. If it had another kind before, the
// resources of that kind report it.
func (m *Manager) ReportRepaired(folder, now string) {
	s := m.packageMissing
	s.mu.Lock()
	defer s.mu.Unlock()
	switch b := s.broken[folder]; {
	case b == nil:
	case b.kindsFound:
		b.fault = "package " + b.name + " has another kind now: " + now
		wake(s.changed)
	default:
		delete(s.broken, folder)
	}
}

// faultOf returns what is wrong with a package of a name, or "".
func (s *packageMissingTeardown) faultOf(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, folder := range slices.Sorted(maps.Keys(s.broken)) {
		if b := s.broken[folder]; b.name == name {
			return b.fault
		}
	}
	return ""
}

// followBroken reconciles the resources of broken packages until the context ends.
func (s *packageMissingTeardown) followBroken(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		s.enqueueBroken(ctx)
		var found []packageMissingKind
		s.retry(ctx, searchingKinds, func() (err error) { found, err = s.kindsOfBroken(ctx); return err })
		for _, k := range found {
			s.startBroken(ctx, k)
		}
	}
}

// kindsOfBroken returns the kinds of the broken packages that were not looked up yet.
func (s *packageMissingTeardown) kindsOfBroken(ctx context.Context) ([]packageMissingKind, error) {
	s.mu.Lock()
	names := map[string]bool{}
	for _, b := range s.broken {
		if !b.kindsFound {
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
		b.kindsFound = b.kindsFound || names[b.name]
	}
	return slices.DeleteFunc(kinds, func(k packageMissingKind) bool { return !names[k.pkg] || s.outOfScope(k) }), nil
}

// enqueueBroken reconciles the resources of the broken packages that are watched.
func (s *packageMissingTeardown) enqueueBroken(ctx context.Context) {
	s.mu.Lock()
	watched := slices.Collect(maps.Values(s.watched))
	s.mu.Unlock()
	for _, k := range watched {
		if k.broken != nil {
			k.broken.enqueueAll(ctx)
		}
	}
}

// servedBy says which process reconciles a kind whose package is broken here.
type servedBy string

const (
	// servedByUnknown: there is no answer, and no question.
	servedByUnknown servedBy = "unknown"
	// servedByAsked: there is a question, and no answer yet.
	servedByAsked servedBy = "asked"
	// servedByNobody: no other process has answered in time.
	servedByNobody servedBy = "nobody"
	// servedByOther: another process has answered.
	servedByOther servedBy = "other"
)

// A brokenReporter reports in the statuses of the resources of one kind that their package is broken. It
// begins with a question, as a process that was started with an earlier version may reconcile them. The
// question is a condition of one resource, and such a process removes it.
type brokenReporter struct {
	reconciler *reconcile.Reconciler
	fault      func() string
	// elsewhere is called when another process answers.
	elsewhere func()
	now       func() time.Time

	mu    sync.Mutex
	by    servedBy
	asked types.UID
	until time.Time
	// reported are the resources whose status says that the package is broken.
	reported map[types.NamespacedName]types.UID
	// unobserved has the resources with a generation that no process has acted upon, and since when.
	unobserved map[types.NamespacedName]time.Time
}

func newBrokenReporter(r *reconcile.Reconciler, fault func() string, elsewhere func()) *brokenReporter {
	return &brokenReporter{
		reconciler: r, fault: fault, elsewhere: elsewhere, now: time.Now, by: servedByUnknown,
		reported: map[types.NamespacedName]types.UID{}, unobserved: map[types.NamespacedName]time.Time{},
	}
}

// reconcile reports in the status of a resource, which is not being deleted, that its package is broken. It
// returns when to do that again.
func (u *brokenReporter) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	fault := u.fault()
	if fault == "" {
		return 0, nil
	}
	cr, err := u.reconciler.Resources.GetCached(ctx, cluster.Ref{GroupVersionKind: u.reconciler.Kind, Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return 0, err
	}
	if cr == nil {
		u.forget(key)
		return 0, nil
	}
	switch by, again := u.whoServes(key, cr); by {
	case servedByUnknown:
		return u.ask(ctx, key, cr.GetUID())
	case servedByAsked, servedByOther:
		return again, nil
	case servedByNobody:
	}
	reported, err := u.reconciler.ReportPackageBroken(ctx, key, fault)
	if err != nil || !reported {
		return 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reported[key] = cr.GetUID()
	return 0, nil
}

// forget removes what is known of a resource that is gone.
func (u *brokenReporter) forget(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.reported, key)
	delete(u.unobserved, key)
}

// whoServes returns who reconciles the kind, according to one of its resources, and when to ask again.
func (u *brokenReporter) whoServes(key types.NamespacedName, cr *unstructured.Unstructured) (servedBy, time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	notServed := reconcile.SaysNotServed(cr)
	switch {
	case u.by == servedByAsked && !notServed && u.asked == cr.GetUID():
		u.by = servedByOther
		u.elsewhere()
	case u.by == servedByAsked && !u.now().Before(u.until):
		u.by = servedByNobody
	case u.by == servedByNobody && !notServed && u.reported[key] == cr.GetUID():
		u.by = servedByUnknown // the condition was removed, and another process would answer a question
		clear(u.reported)
	}
	switch u.by {
	case servedByAsked:
		return u.by, u.until.Sub(u.now())
	case servedByOther:
		return u.by, u.awaitObservation(key, cr)
	case servedByUnknown, servedByNobody:
	}
	return u.by, 0
}

// awaitObservation returns when to look again at a resource with a generation that no process has acted upon, or 0. If
// none does in time, the process that reconciled it is gone.
func (u *brokenReporter) awaitObservation(key types.NamespacedName, cr *unstructured.Unstructured) time.Duration {
	observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	since, unobserved := u.unobserved[key]
	switch now := u.now(); {
	case observed == cr.GetGeneration():
		delete(u.unobserved, key)
		return 0
	case !unobserved:
		u.unobserved[key] = now
		return observationTime
	case now.Sub(since) < observationTime:
		return observationTime - now.Sub(since)
	}
	clear(u.unobserved)
	u.by = servedByUnknown
	return time.Millisecond
}

// ask asks whether another process reconciles the kind.
func (u *brokenReporter) ask(ctx context.Context, key types.NamespacedName, uid types.UID) (time.Duration, error) {
	u.mu.Lock()
	if u.by != servedByUnknown {
		u.mu.Unlock()
		return time.Millisecond, nil // another resource has asked meanwhile
	}
	u.by, u.asked, u.until = servedByAsked, uid, u.now().Add(answerTime)
	u.mu.Unlock()
	asked, err := u.reconciler.AskWhetherServed(ctx, key)
	if asked && err == nil {
		return answerTime, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.by = servedByUnknown // another resource may ask
	return 0, err
}
