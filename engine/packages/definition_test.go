package packages

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

func TestTheDefinitionOfAPackageOfAnotherOperatorIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		// other is the kind that the other Package serves, or "-" if there is none.
		other string
		want  string
	}{
		"Serves":    {"both operators would replace each other's for ever", "Thing", "False KindTaken"},
		"NotYet":    {"it may be about to serve it", "", "False KindTaken"},
		"OfAnother": {"it has gone over to another kind, and left the definition behind", "Gadget", "True Served"},
		"IsDeleted": {"nobody needs it any more", "-", "True Served"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.owner = "other"
			if tc.other != "-" {
				s.apply("other", text("Thing", "a"))
				u := s.get("other")
				u.Object["status"] = map[string]any{"group": "example.com", "kind": tc.other}
				if _, err := s.memory.Put("another", u); err != nil {
					t.Fatal(err)
				}
			}
			s.Selector = labels.SelectorFromSet(labels.Set{"team": "a"})
			s.apply("p", text("Thing", "b"))
			u := s.get("p")
			u.SetLabels(map[string]string{"team": "a"})
			if _, err := s.memory.Put("kubectl", u); err != nil {
				t.Fatal(err)
			}
			_ = s.step("p")
			if got := s.ready("p"); got != tc.want {
				t.Errorf("%s: Ready is %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
