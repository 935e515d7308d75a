package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	s.t.Helper()
	p := newSmall(s.t, name, contesting)
	other := p
	s.operate(p.dir)
	if strings.HasSuffix(name, "apart") {
		other = newSmall(s.t, name+"too", contesting)
		s.operate(other.dir)
	}
	r := rivals{p.thing(s, "first", first), other.thing(s, "second", second)}
	s.create(r.first.DeepCopy())
	s.expectAllReady(r.first)
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
				before := s.get("ConfigMap", "contested")
				holder := s.expectThat(r.first, "to exist", exists)
				from := mark(t)
				s.create(r.second.DeepCopy())
				has, lacks, writes := r.first, r.second, 0
				if row.winner == "second" {
					has, lacks, writes = r.second, r.first, 1
				}
				t.Log(s.expectNotReady(lacks, "OwnedByAnother", "web: ", "ConfigMap "+s.namespace+"/contested", row.winner))
				s.expectAllReady(has)
				s.expectStill()
				if made := s.operatorRequests(from).about("configmaps").mutating(); len(made) != writes {
					t.Errorf("the object was written by %s, not %d times", made, writes)
				}
				after := s.expectData("contested", "text", row.winner)
				if controllerOf(after) != row.winner {
					t.Errorf("its controller is %s", controllerOf(after))
				}
				if row.winner == "first" && (after.GetResourceVersion() != before.GetResourceVersion() ||
					s.expectAllReady(r.first).GetResourceVersion() != holder.GetResourceVersion()) {
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
	s.t.Helper()
	s.settle()
	from, began := mark(s.t), time.Now()
	eventually(s.t, "the end of the watch", func() error {
		if time.Since(began) < watched {
			return errNotYet
		}
		return nil
	})
	all := s.operatorRequests(from)
	if looks := all.about("configmaps").verbs("get"); len(looks) == 0 {
		s.t.Error("nobody has looked at the object, so that this shows nothing")
	}
	if len(all.mutating()) > 0 || len(all.events()) > 0 {
		s.t.Errorf("within %s: %s, Events: %s", watched, all.mutating(), all.events())
	}
}

// expectInherited deletes the resource that has the object, and expects the other one
// to get one of its own, and to leave nothing when it goes as well.
func (s *site) expectInherited(has, lacks *unstructured.Unstructured) {
	s.t.Helper()
	s.delete(has)
	s.expectGone(has)
	s.expectAllReady(lacks)
	s.expectData("contested", "text", lacks.GetName())
	s.delete(lacks)
	s.expectFinished(lacks, "ConfigMap")
}

func TestE6ObjectThatItsResourceLeftBehindIsAdoptedByAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spec := func(text string) map[string]any { return map[string]any{"text": text, "adopt": true, "keep": true} }
	r := newRivals(s, "leftbehind", spec("first"), spec("second"))
	before := s.get("ConfigMap", "contested")
	s.create(r.second.DeepCopy())
	s.expectNotReady(r.second, "OwnedByAnother", "Thing.leftbehind.example.com "+s.namespace+"/first, which keeps it")
	s.delete(r.first)
	s.expectGone(r.first)
	s.expectAllReady(r.second)
	if after := s.expectData("contested", "text", "second"); after.GetUID() != before.GetUID() {
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
			if err := installCRDs(t.Context(), p.dir); err != nil {
				t.Fatal(err)
			}
			both := []*unstructured.Unstructured{
				p.thing(s, "first", map[string]any{"text": "first", "adopt": adopt}), p.thing(s, "second", map[string]any{"text": "second", "adopt": adopt}),
			}
			for _, u := range both {
				s.create(u.DeepCopy())
			}
			s.operate(p.dir)
			var has, lacks *unstructured.Unstructured
			eventually(t, "one of them to have the object", func() error {
				has, lacks = both[0], both[1]
				object := s.expectThat(s.ref("ConfigMap", "contested"), "to exist", exists)
				if controllerOf(object) == "second" {
					has, lacks = both[1], both[0]
				}
				got, err := read(t.Context(), lacks)
				if err == nil && condition(got, "Ready")["reason"] != "OwnedByAnother" {
					err = errNotYet
				}
				return err
			})
			s.expectAllReady(has)
			s.expectStill()
			if got := s.expectData("contested", "text", has.GetName()); controllerOf(got) != has.GetName() {
				t.Errorf("its controller is %s", controllerOf(got))
			}
		})
	}
}
