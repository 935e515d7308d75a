package packages

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
)

func TestAPackageThatIsNotServedAfterARestartIsNotLetGo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.apply("p", text("Thing", "a"))
	if err := s.step("p"); err != nil {
		t.Fatal(err)
	}
	s.resources = []Resource{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "one"}}}
	s.defined = []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Thing"}}
	s.restart()
	s.ended = errors.New("the check took too much")
	_ = s.step("p") // an error is in the status
	if got := s.ready("p"); got != "False CheckFailed" {
		t.Fatalf("Ready is %s", got)
	}
	if err := s.memory.DeleteInBackground(cluster.Ref{GroupVersionKind: Kind, Name: "p"}, s.get("p").GetUID()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_ = s.step("p")
		if s.get("p") == nil {
			t.Fatal("it is gone, and there is a resource")
		}
	}
	s.resources = nil
	_ = s.step("p")
	if u := s.get("p"); u != nil {
		t.Errorf("it is still there: %v", u.Object["status"])
	}
}

func TestAPackageThatTurnsBackHoldsNoOtherKind(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.apply("p", text("Thing", "a"))
	_ = s.step("p")
	s.installed = errors.New("no connection")
	s.apply("p", text("Other", "b"))
	_ = s.step("p")
	s.installed = nil
	s.apply("p", text("Thing", "a"))
	_ = s.step("p")
	s.apply("q", text("Other", "c"))
	_ = s.step("q")
	for _, name := range []string{"p", "q"} {
		if got := s.ready(name); got != "True Served" {
			t.Errorf("%s: Ready is %s: %v", name, got, s.get(name).Object["status"])
		}
	}
}
