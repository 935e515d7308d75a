// Package clustertest gives a test a cluster, and helpers that act on it from outside the engine: they
// change objects as another field manager, serve kinds, reject writes, and return what was written. The
// same test runs in memory and on a real API server:
//
//	go test ./engine/rollout                          in memory, in a second
//	OPERETTA_TEST_LIVE=1 go test ./engine/rollout     on an API server
//
// Main starts the API server for the tests of a package, and stops it after them. Each test has a
// namespace. As in the operator, the engine reads from a cache that holds the objects with its label
// and is consistent with its own writes.
//
// The garbage collector, which foreground deletion needs, is the only controller that runs: none writes
// a status, as in memory. The garbage collector is slow, so a Delete here returns only after the garbage
// collector has processed it. Tests of terminating objects use finalizers, which look the same to the
// engine.
//
// Tests of the operator as a whole do not use this package; they are in test/e2e.
package clustertest

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
)

// LiveEnv is the variable that makes tests run on an API server, whatever its value.
const LiveEnv = "OPERETTA_TEST_LIVE"

// A Site is a cluster in which one test has a namespace.
type Site struct {
	// Cluster is what the engine under test uses.
	cluster.Cluster
	// Namespace is where the test's objects are.
	Namespace string

	t       *testing.T
	backend backend
}

// A backend implements the methods of a Site, in memory or on an API server.
type backend interface {
	// put creates or overwrites an object with its status as a field manager, whatever its
	// current resourceVersion is.
	put(ctx context.Context, manager string, object *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// remove deletes an object as a person does.
	remove(ctx context.Context, object *unstructured.Unstructured) error
	// list returns the objects of a kind.
	list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error)
	// serve adds a namespaced kind to the cluster, and withdraw removes it with its objects.
	serve(ctx context.Context, kind schema.GroupVersionKind) error
	withdraw(ctx context.Context, kind schema.GroupVersionKind) error
	// terminate begins the deletion of the site's namespace, which never ends.
	terminate(ctx context.Context) error
	// refuse sets an admission check for writes; nil allows everything.
	refuse(r memory.Admission)
	// events returns the changes since the last call.
	events(ctx context.Context) ([]cluster.ObjectChange, error)
}

// Main runs the tests of a package, on clusters that serve some kinds from the
// beginning, and returns the exit code. A TestMain calls it.
func Main(m *testing.M, kinds ...schema.GroupVersionKind) int {
	alwaysServed = kinds
	if os.Getenv(LiveEnv) == "" {
		return m.Run()
	}
	stop, err := startLiveServer()
	defer stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clustertest:", err)
		return 1
	}
	return m.Run()
}

// alwaysServed are the kinds that every site serves.
var alwaysServed []schema.GroupVersionKind

// New returns the site of a test.
func New(t *testing.T) *Site {
	t.Helper()
	if liveServer != nil {
		return liveServer.newSite(t)
	}
	memory := memory.New()
	memory.EnableValidation()
	for _, kind := range alwaysServed {
		memory.Serve(kind.GroupKind(), cluster.Namespaced)
	}
	m := &inMemory{memory, memory.Watch()}
	return &Site{Cluster: m, Namespace: "default", t: t, backend: m}
}

var (
	namespaces atomic.Int32
	unlikely   = regexp.MustCompile(`[^a-z0-9]+`)
)

// namespaceOf returns a unique name of a namespace for a test.
func namespaceOf(t *testing.T) string {
	t.Helper()
	name := unlikely.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-")
	return fmt.Sprintf("%.40s-%d", name, namespaces.Add(1))
}

// Often returns how often a test repeats a step whose result depends on chance: n times in memory, and
// at most five times on an API server, where each repetition costs requests.
func Often(n int) int {
	if liveServer != nil {
		return min(n, 5)
	}
	return n
}

// Put creates or updates an object with its status as a field manager, and returns it.
func (s *Site) Put(manager string, object *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	out, err := s.backend.put(s.t.Context(), manager, object.DeepCopy())
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// Remove deletes an object as a person does.
func (s *Site) Remove(object *unstructured.Unstructured) {
	s.t.Helper()
	if err := s.backend.remove(s.t.Context(), object); err != nil {
		s.t.Fatal(err)
	}
}

// Find returns the current object, or nil if there is none.
func (s *Site) Find(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.GetLive(s.t.Context(), cluster.Ref{GroupVersionKind: kind, Namespace: s.Namespace, Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// List returns the objects of a kind, by name.
func (s *Site) List(kind schema.GroupVersionKind) []*unstructured.Unstructured {
	s.t.Helper()
	out, err := s.backend.list(s.t.Context(), kind)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// Kind returns a kind in a group of this site only, which is served once Serve is called.
func (s *Site) Kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: s.Namespace + ".example.com", Version: "v1", Kind: name}
}

// Serve adds a namespaced kind of Kind to the cluster, until the test ends.
func (s *Site) Serve(kind schema.GroupVersionKind) {
	s.t.Helper()
	s.t.Cleanup(func() { s.withdraw(context.WithoutCancel(s.t.Context()), kind) })
	if err := s.backend.serve(s.t.Context(), kind); err != nil {
		s.t.Fatal(err)
	}
}

// Withdraw removes a kind that Serve has added.
func (s *Site) Withdraw(kind schema.GroupVersionKind) {
	s.t.Helper()
	s.withdraw(s.t.Context(), kind)
}

func (s *Site) withdraw(ctx context.Context, kind schema.GroupVersionKind) {
	s.t.Helper()
	if err := s.backend.withdraw(ctx, kind); err != nil {
		s.t.Fatal(err)
	}
}

// Refuse sets an admission check for creations, updates and deletions, as an admission webhook does; nil
// allows everything again.
func (s *Site) Refuse(r memory.Admission) { s.backend.refuse(r) }

// Terminate begins the deletion of the namespace, which never ends, because no namespace controller runs.
func (s *Site) Terminate() {
	s.t.Helper()
	if err := s.backend.terminate(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// Events returns all changes since the last call, in order. It leaves out the updates by the garbage
// collector that are part of a foreground deletion, so that a deletion is one event.
func (s *Site) Events() []cluster.ObjectChange {
	s.t.Helper()
	all, err := s.backend.events(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all), fromGarbageCollector)
}

// fromGarbageCollector reports whether a change is the garbage collector's part of a deletion in
// the foreground: an object waits for it alone, or it takes its finalizer away.
func fromGarbageCollector(e cluster.ObjectChange) bool {
	if e.Operation != cluster.Updated || e.Object.GetDeletionTimestamp() == nil {
		return false
	}
	const its = metav1.FinalizerDeleteDependents
	waits := len(e.Object.GetFinalizers()) == 1 && slices.Contains(e.Object.GetFinalizers(), its)
	done := slices.Contains(e.Before.GetFinalizers(), its) && !slices.Contains(e.Object.GetFinalizers(), its)
	return waits || done
}
