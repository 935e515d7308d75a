package packages

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/status"
)

// narrowSite is a site whose definitions are named by the contents.
func narrowSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.definitionOf = func(text string) *definition {
		_, name, _ := strings.Cut(text, `metadata: name: "`)
		name, _, _ = strings.Cut(name, `"`)
		return &definition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	return s
}

func TestAContentWhoseDefinitionResourcesHoldBackIsNotServed(t *testing.T) {
	t.Parallel()
	s := narrowSite(t)
	expect := func(when, ready string, calls ...string) {
		t.Helper()
		if err := s.step("p"); err != nil {
			t.Errorf("%s: it is tried again with a growing delay: %v", when, err)
		}
		if got := s.ready("p"); got != ready {
			t.Errorf("%s: Ready is %q, want %q", when, got, ready)
		}
		if diff := cmp.Diff(calls, s.take()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	s.apply("p", text("Thing", "a"))
	expect("the first content", "True Served", "install", "serve Thing")
	s.narrow = "b"
	s.apply("p", text("Thing", "b"))
	expect("a narrower one", "False CRDTooNarrow", "install", "outdated: CRDTooNarrow"+sayswhy)
	is, _, _ := unstructured.NestedMap(s.get("p").Object, "status")
	if c := status.Condition(is, "CRDReady"); c == nil || !strings.Contains(c.Message, "spec.old") {
		t.Errorf("the status does not name the field: %v", c)
	}
	again, err := s.Reconcile(t.Context(), types.NamespacedName{Name: "p"})
	if err != nil || again > 30*time.Second || again == 0 {
		t.Errorf("it is tried again after %s, %v", again, err)
	}
	s.take()
	s.restart()
	expect("after a restart", "False CRDTooNarrow", "install", "serve Thing outdated: CRDTooNarrow"+sayswhy)
	s.narrow = ""
	expect("when the resources are changed", "True Served", "install", "swap Thing")

	s.restart()
	s.narrow = "b"
	expect("a restart with what was accepted: another engine may translate it in a narrower way", "True Served", "install", "serve Thing")
}
