package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

const contesting = `
#Spec: {
	text:  string
	adopt: bool
	keep:  *false | bool
}

components: web: {
	objects: settings: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "contested"
		data: text: cr.spec.text
	}
	policy: settings: {
		adopt: cr.spec.adopt
		if cr.spec.keep {delete: "orphan"}
	}
}
`

// watched is how long two resources that contest an object are watched.
const watched = 10 * time.Second

// rivals are two resources that render the same object.
type rivals struct{ first, second *unstructured.Unstructured }

// newRivals starts what serves two resources, and creates the first.
func newRivals(s *site, name string, first, second map[string]any) rivals {
	s.T.Helper()
	p := newSmall(s.T, name, contesting)
	other := p
	s.Operate(p.Dir)
	if strings.HasSuffix(name, "apart") {
		other = newSmall(s.T, name+"too", contesting)
		s.Operate(other.Dir)
	}
	r := rivals{p.Thing(s.Site, "first", first), other.Thing(s.Site, "second", second)}
	s.Create(r.first.DeepCopy())
	s.ExpectAllReady(r.first)
	return r
}

func TestE6ObjectThatTwoResourcesRenderIsNotTakenInTurn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name          string
		first, second bool
		winner        string
	}{
		{"neither adopts", false, false, "first"},
		{"the first adopts", true, false, "first"},
		{"the second adopts", false, true, "second"},
		{"both adopt", true, true, "first"},
	} {
		for place, suffix := range map[string]string{"one package": "", "two packages and operators": "apart"} {
			t.Run(place+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				name := strings.ReplaceAll(row.name, " ", "") + suffix
				r := newRivals(s, name, map[string]any{"text": "first", "adopt": row.first}, map[string]any{"text": "second", "adopt": row.second})
				before := s.Get("ConfigMap", "contested")
				holder := s.ExpectThat(r.first, "to exist", harness.Exists)
				from := harness.Mark(t)
				s.Create(r.second.DeepCopy())
				has, lacks, writes := r.first, r.second, 0
				if row.winner == "second" {
					has, lacks, writes = r.second, r.first, 1
				}
				t.Log(s.ExpectNotReady(lacks, "OwnedByAnother", "web: ", "ConfigMap "+s.Namespace+"/contested", row.winner))
				s.ExpectAllReady(has)
				s.expectStill()
				if made := s.OperatorRequests(from).About("configmaps").Mutating(); len(made) != writes {
					t.Errorf("the object was written by %s, not %d times", made, writes)
				}
				after := s.ExpectData("contested", "text", row.winner)
				if controllerOf(after) != row.winner {
					t.Errorf("its controller is %s", controllerOf(after))
				}
				if row.winner == "first" && (after.GetResourceVersion() != before.GetResourceVersion() ||
					s.ExpectAllReady(r.first).GetResourceVersion() != holder.GetResourceVersion()) {
					t.Error("the object or the resource that has it was changed")
				}
				s.expectInherited(has, lacks)
			})
		}
	}
}

// expectStill expects the operators to write nothing for a while, though they look,
// once what they have to say about the contest is said.
func (s *site) expectStill() {
	s.T.Helper()
	s.Settle()
	from, began := harness.Mark(s.T), time.Now()
	harness.Eventually(s.T, "the end of the watch", func() error {
		if time.Since(began) < watched {
			return harness.ErrNotYet
		}
		return nil
	})
	all := s.OperatorRequests(from)
	if looks := all.About("configmaps").Verbs("get"); len(looks) == 0 {
		s.T.Error("nobody has looked at the object, so that this shows nothing")
	}
	if len(all.Mutating()) > 0 || len(all.Events()) > 0 {
		s.T.Errorf("within %s: %s, Events: %s", watched, all.Mutating(), all.Events())
	}
}

// expectInherited deletes the resource that has the object, and expects the other one
// to get one of its own, and to leave nothing when it goes as well.
func (s *site) expectInherited(has, lacks *unstructured.Unstructured) {
	s.T.Helper()
	s.Delete(has)
	s.ExpectGone(has)
	s.ExpectAllReady(lacks)
	s.ExpectData("contested", "text", lacks.GetName())
	s.Delete(lacks)
	s.ExpectFinished(lacks, "ConfigMap")
}

func TestE6ObjectThatItsResourceLeftBehindIsAdoptedByAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spec := func(text string) map[string]any { return map[string]any{"text": text, "adopt": true, "keep": true} }
	r := newRivals(s, "leftbehind", spec("first"), spec("second"))
	before := s.Get("ConfigMap", "contested")
	s.Create(r.second.DeepCopy())
	s.ExpectNotReady(r.second, "OwnedByAnother", "Thing.leftbehind.example.com "+s.Namespace+"/first, which keeps it")
	s.Delete(r.first)
	s.ExpectGone(r.first)
	s.ExpectAllReady(r.second)
	if after := s.ExpectData("contested", "text", "second"); after.GetUID() != before.GetUID() {
		t.Error("it is another object")
	}
}

// TestE6TwoResourcesThatAppearAtOnceSettle: both may find nothing there, and write.
func TestE6TwoResourcesThatAppearAtOnceSettle(t *testing.T) {
	t.Parallel()
	for name, adopt := range map[string]bool{"neither adopts": false, "both adopt": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := newSmall(t, "atonce"+strings.ReplaceAll(name, " ", ""), contesting)
			if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
				t.Fatal(err)
			}
			both := []*unstructured.Unstructured{
				p.Thing(s.Site, "first", map[string]any{"text": "first", "adopt": adopt}), p.Thing(s.Site, "second", map[string]any{"text": "second", "adopt": adopt}),
			}
			for _, u := range both {
				s.Create(u.DeepCopy())
			}
			s.Operate(p.Dir)
			var has, lacks *unstructured.Unstructured
			harness.Eventually(t, "one of them to have the object", func() error {
				has, lacks = both[0], both[1]
				object := s.ExpectThat(s.Ref("ConfigMap", "contested"), "to exist", harness.Exists)
				if controllerOf(object) == "second" {
					has, lacks = both[1], both[0]
				}
				got, err := harness.Read(t.Context(), lacks)
				if err == nil && harness.Condition(got, "Ready")["reason"] != "OwnedByAnother" {
					err = harness.ErrNotYet
				}
				return err
			})
			s.ExpectAllReady(has)
			s.expectStill()
			if got := s.ExpectData("contested", "text", has.GetName()); controllerOf(got) != has.GetName() {
				t.Errorf("its controller is %s", controllerOf(got))
			}
		})
	}
}
