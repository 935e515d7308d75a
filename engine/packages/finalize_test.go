package packages

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
)

func TestDeletedPackageGoesOnceItsResourcesAreGone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.apply("p", text("Thing", "a"))
	_ = s.step("p")
	s.resources = []Resource{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "one"}}}
	u := s.get("p")
	if err := s.memory.Delete(t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
		t.Fatal(err)
	}
	s.restart()
	_ = s.take()
	_ = s.step("p")
	if diff := cmp.Diff([]string{"install", "serve Thing outdated: "}, s.take()); diff != "" || s.ready("p") != "False Deleting" {
		t.Errorf("while there is one, Ready is %s; after a restart (-want +got):\n%s", s.ready("p"), diff)
	}
	s.resources = nil
	_ = s.step("p")
	if diff := cmp.Diff([]string{"withdraw Thing"}, s.take()); diff != "" {
		t.Errorf("once it is gone (-want +got):\n%s", diff)
	}
	if u := s.get("p"); u != nil && len(u.GetFinalizers()) > 0 {
		t.Errorf("it is held by %v", u.GetFinalizers())
	}
}

func TestADeletedPackageWaitsWhateverItsStatusSays(t *testing.T) {
	t.Parallel()
	thing := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	for name, tc := range map[string]struct {
		reason  string
		status  map[string]any
		defined []schema.GroupVersionKind
		waits   bool
	}{
		"Wiped":   {"whoever may write the status cannot strand resources", map[string]any{}, []schema.GroupVersionKind{thing}, true},
		"Forged":  {"the kind in the status may be another one", map[string]any{"group": "example.com", "kind": "Other", "versions": []any{"v1"}, "resources": int64(0)}, []schema.GroupVersionKind{thing}, true},
		"Secret":  {"who forges the kind in the status neither holds the Package nor reads names of other kinds in its conditions", map[string]any{"kind": "Secret", "versions": []any{"v1"}}, nil, false},
		"Unknown": {"a Package that never served has no definition", map[string]any{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.apply("p", text("Thing", "a"))
			if err := s.step("p"); err != nil {
				t.Fatal(err)
			}
			s.restart()
			s.ended = errors.New("too slow") // so that nothing is served, and only the cluster knows the kind
			s.resources, s.defined = []Resource{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "one"}}}, tc.defined
			u := s.get("p")
			u.Object["status"] = tc.status
			if err := s.memory.ApplyStatus(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			if err := s.memory.Delete(t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
				t.Fatal(err)
			}
			if err := s.step("p"); err != nil {
				t.Fatal(err)
			}
			if u := s.get("p"); (u != nil && len(u.GetFinalizers()) > 0) != tc.waits {
				t.Errorf("%s: the Package is %v", tc.reason, u)
			}
		})
	}
}

func TestADeletedPackageThatIsNotServedAsksSeldomAndForOneResource(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		ended  error
		again  time.Duration
		limits []int
	}{
		"Served":    {"the cache is asked, which costs no request", nil, deletionAgain, nil},
		"NotServed": {"each look lists on the API server, perhaps for years", errors.New("too slow"), countAgain, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.apply("p", text("Thing", "a"))
			if err := s.step("p"); err != nil {
				t.Fatal(err)
			}
			s.resources = []Resource{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "one"}}, {NamespacedName: types.NamespacedName{Namespace: "ns", Name: "two"}}}
			s.defined = []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Thing"}}
			if tc.ended != nil {
				s.restart()
				s.ended = tc.ended
			}
			u := s.get("p")
			if err := s.memory.Delete(t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
				t.Fatal(err)
			}
			if err := s.step("p"); err != nil {
				t.Fatal(err)
			}
			s.limits = nil
			again, err := s.Reconcile(t.Context(), types.NamespacedName{Name: "p"})
			if err != nil || again != tc.again {
				t.Errorf("%s: the next step is due in %v: %v", tc.reason, again, err)
			}
			if diff := cmp.Diff(tc.limits, s.limits); diff != "" {
				t.Errorf("%s: limits of lists (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
