// Package clustertest gives a test a cluster, and what a test does to one besides what
// is tested: change objects as somebody else, serve kinds, refuse writes, see what was
// written. The same test runs in memory and on a real API server:
//
//	go test ./engine/rollout                          in memory, in a second
//	OPERETTA_TEST_LIVE=1 go test ./engine/rollout     on an API server
//
// The API server is started by the tests of a package, in Main, and ends with them.
// Each test has a namespace of it. What the engine reads comes from a cache of what
// carries its label and sees its own writes, as it is in the operator.
//
// Beside the API server runs the garbage collector, which foreground deletion needs,
// and nothing else: no controller writes a status, as nobody does in memory. The
// garbage collector takes its time. So that a test need not, a Delete here returns only
// after it has had its turn; what the engine does with objects that are on their way
// out is tested with finalizers, which is the same to it.
//
// It is no package for tests of the operator as a whole; those are in test/e2e.
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

// LiveEnv is the variable that has tests run on an API server, whatever its value.
const LiveEnv = "OPERETTA_TEST_LIVE"

// A Site is a namespace of a cluster that belongs to one test.
type Site struct {
	// Cluster is for what is tested.
	cluster.Cluster
	// Namespace is where the test's objects are.
	Namespace string

	t       *testing.T
	backend backend
}

// A backend is what tests do to a cluster besides.
type backend interface {
	// put creates or updates an object with its status as a field manager. What is
	// there is overwritten, whatever has happened to it since it was read.
	put(ctx context.Context, manager string, object *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// remove deletes an object as a person does.
	remove(ctx context.Context, object *unstructured.Unstructured) error
	// list returns the objects of a kind.
	list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error)
	// serve makes the cluster know a namespaced kind, and withdraw forget it with its
	// objects.
	serve(ctx context.Context, kind schema.GroupVersionKind) error
	withdraw(ctx context.Context, kind schema.GroupVersionKind) error
	// terminate begins the deletion of the site's namespace, which does not end.
	terminate(ctx context.Context) error
	// refuse makes the cluster ask before it writes; nil allows everything.
	refuse(r memory.Admission)
	// events returns what has changed since the last call.
	events(ctx context.Context) ([]cluster.Event, error)
}

// Main runs the tests of a package, on clusters that serve some kinds from the
// beginning, and returns the exit code. A TestMain calls it.
func Main(m *testing.M, kinds ...schema.GroupVersionKind) int {
	always = kinds
	if os.Getenv(LiveEnv) == "" {
		return m.Run()
	}
	stop, err := startPlane()
	defer stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clustertest:", err)
		return 1
	}
	return m.Run()
}

// always are the kinds that every site serves.
var always []schema.GroupVersionKind

// New returns the site of a test.
func New(t *testing.T) *Site {
	t.Helper()
	if plane != nil {
		return plane.newSite(t)
	}
	memory := memory.New()
	memory.Validate()
	for _, kind := range always {
		memory.Serve(kind.GroupKind(), cluster.Namespaced)
	}
	m := &inMemory{memory, memory.Watch()}
	return &Site{Cluster: m, Namespace: "default", t: t, backend: m}
}

var (
	sites    atomic.Int32
	unlikely = regexp.MustCompile(`[^a-z0-9]+`)
)

// namespaceOf returns a new name of a namespace for a test.
func namespaceOf(t *testing.T) string {
	t.Helper()
	name := unlikely.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-")
	return fmt.Sprintf("%.40s-%d", name, sites.Add(1))
}

// Often returns how often a test repeats something whose result depends on chance: n
// times in memory, and a few on an API server, where each costs requests.
func Often(n int) int {
	if plane != nil {
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

// Find returns an object as it is, or nil.
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

// Kind returns a kind of the site's own group, which is served once Serve is called.
func (s *Site) Kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: s.Namespace + ".example.com", Version: "v1", Kind: name}
}

// Serve makes the cluster know a kind that Kind has returned, until the test ends. Its
// objects have a namespace.
func (s *Site) Serve(kind schema.GroupVersionKind) {
	s.t.Helper()
	s.t.Cleanup(func() { s.withdraw(context.WithoutCancel(s.t.Context()), kind) })
	if err := s.backend.serve(s.t.Context(), kind); err != nil {
		s.t.Fatal(err)
	}
}

// Withdraw makes the cluster forget a kind that Serve made it know.
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

// Refuse makes the cluster ask before it creates, updates or deletes anything, as it
// asks webhooks; nil allows everything again.
func (s *Site) Refuse(r memory.Admission) { s.backend.refuse(r) }

// Terminate begins the deletion of the namespace, which does not end: there is no
// controller that would see to it.
func (s *Site) Terminate() {
	s.t.Helper()
	if err := s.backend.terminate(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// Events returns what has changed since the last call, in order, whoever changed it;
// but for what the garbage collector has to do with each deletion, which shows as one.
func (s *Site) Events() []cluster.Event {
	s.t.Helper()
	all, err := s.backend.events(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all), collectors)
}

// collectors reports whether a change is the garbage collector's part of a deletion in
// the foreground: an object waits for it alone, or it takes its finalizer away.
func collectors(e cluster.Event) bool {
	if e.Verb != cluster.Updated || e.Object.GetDeletionTimestamp() == nil {
		return false
	}
	const its = metav1.FinalizerDeleteDependents
	waits := len(e.Object.GetFinalizers()) == 1 && slices.Contains(e.Object.GetFinalizers(), its)
	done := slices.Contains(e.Before.GetFinalizers(), its) && !slices.Contains(e.Object.GetFinalizers(), its)
	return waits || done
}
