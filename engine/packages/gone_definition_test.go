package packages

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/status"
)

// goneDefinitions are the kinds whose definitions are gone.
type goneDefinitions map[schema.GroupKind]bool

func (g goneDefinitions) Gone(kind schema.GroupVersionKind) bool { return g[kind.GroupKind()] }

func TestADefinitionThatIsGoneIsNoticed(t *testing.T) {
	t.Parallel()
	gone := func(s *site) { s.Definitions = goneDefinitions{{Group: "example.com", Kind: "Thing"}: true} }
	back := func(s *site) { s.Definitions = goneDefinitions{}; s.installed = nil }
	refused := func(s *site) { gone(s); s.installed = errors.New("the operator does not install it") }
	begin := turn{func(s *site) { s.apply("p", text("Thing", "a")) }, "True Served", []string{"install", "serve Thing"}}
	broken := map[string]any{"source": map[string]any{"inline": map[string]any{"main.cue": "package p\nx: {"}}}
	for name, row := range map[string]struct {
		reason  string
		turns   []turn
		defined string
	}{
		"it is there": {"nothing is asked at rest", []turn{begin, {func(s *site) { s.now = s.now.Add(time.Hour) }, "True Served", nil}}, "True Installed"},
		"the operator installs definitions": {"users could create no resource any more", []turn{
			begin, {gone, "True Served", []string{"install", "outdated: "}}, {back, "True Served", nil},
		}, "True Installed"},
		"the operator does not": {"a person has to", []turn{begin, {refused, "False CRDNotInstalled", nil}}, "False CRDNotInstalled"},
		"a person has installed it": {"nobody has to tell the operator", []turn{
			begin, {refused, "False CRDNotInstalled", nil}, {back, "True Served", []string{"install", "outdated: "}},
		}, "True Installed"},
		"the content is broken besides": {"what is served needs it all the same", []turn{
			begin, {func(s *site) { s.apply("p", broken) }, "False PackageBroken", []string{"outdated: main.cue:2" + sayswhy}},
			{gone, "False PackageBroken", []string{"install"}},
		}, "True Installed"},
		"the content is broken, and the operator installs none": {"each condition says its own", []turn{
			begin, {func(s *site) { s.apply("p", broken) }, "False PackageBroken", []string{"outdated: main.cue:2" + sayswhy}},
			{refused, "False PackageBroken", nil},
		}, "False CRDNotInstalled"},
		"the Package is deleted": {"a definition that goes with it does not come back", []turn{
			begin, {func(s *site) {
				s.resources = []Resource{resource("r", "")}
				u := s.get("p")
				if err := s.memory.Delete(s.t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
					s.t.Fatal(err)
				}
				gone(s)
			}, "False Deleting", nil},
		}, "False CRDNotInstalled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.play(row.reason, row.turns)
			is, _, _ := unstructured.NestedMap(s.get("p").Object, "status")
			got := status.Condition(is, ConditionCRDReady)
			if diff := cmp.Diff(row.defined, string(got.Status)+" "+got.Reason); diff != "" {
				t.Errorf("%s: CRDReady (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
