package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

const contestingBody = `
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

// contestDuration is how long the tests watch two resources that render the same object.
const contestDuration = 10 * time.Second

// rivals are two resources that render the same object.
type rivals struct{ first, second *unstructured.Unstructured }

// newRivals starts the operators of two resources, and creates the first resource.
func newRivals(s *env, name string, first, second map[string]any) rivals {
	s.T.Helper()
	p := newTestPackage(s.T, name, contestingBody)
	other := p
	s.StartOperator(p.Dir)
	if strings.HasSuffix(name, "apart") {
		other = newTestPackage(s.T, name+"too", contestingBody)
		s.StartOperator(other.Dir)
	}
	r := rivals{p.Thing(s.Env, "first", first), other.Thing(s.Env, "second", second)}
	s.Create(r.first.DeepCopy())
	s.ExpectResourceReady(r.first)
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
				s := newEnv(t)
				name := strings.ReplaceAll(row.name, " ", "") + suffix
				r := newRivals(s, name, map[string]any{"text": "first", "adopt": row.first}, map[string]any{"text": "second", "adopt": row.second})
				before := s.Get("ConfigMap", "contested")
				holder := s.ExpectObject(r.first, "to exist", harness.Exists)
				from := harness.MarkAudit(t)
				s.Create(r.second.DeepCopy())
				has, lacks, writes := r.first, r.second, 0
				if row.winner == "second" {
					has, lacks, writes = r.second, r.first, 1
				}
				t.Log(s.ExpectNotReady(lacks, "OwnedByAnother", "web: ", "ConfigMap "+s.Namespace+"/contested", row.winner))
				s.ExpectResourceReady(has)
				s.expectNoWrites()
				if made := s.OperatorRequests(from).OfResource("configmaps").Mutating(); len(made) != writes {
					t.Errorf("the object was written by %s, not %d times", made, writes)
				}
				after := s.ExpectData("contested", "text", row.winner)
				if controllerOf(after) != row.winner {
					t.Errorf("its controller is %s", controllerOf(after))
				}
				if row.winner == "first" && (after.GetResourceVersion() != before.GetResourceVersion() ||
					s.ExpectResourceReady(r.first).GetResourceVersion() != holder.GetResourceVersion()) {
					t.Error("the object or the resource that has it was changed")
				}
				s.expectTakenOver(has, lacks)
			})
		}
	}
}

// expectNoWrites waits until the operators have reported the conflict, and expects no write for
// contestDuration.
func (s *env) expectNoWrites() {
	s.T.Helper()
	s.WaitUntilIdle()
	from, began := harness.MarkAudit(s.T), time.Now()
	harness.Eventually(s.T, "the end of the watch", func() error {
		if time.Since(began) < contestDuration {
			return harness.ErrNotYet
		}
		return nil
	})
	all := s.OperatorRequests(from)
	if looks := all.OfResource("configmaps").WithVerbs("get"); len(looks) == 0 {
		s.T.Error("nobody has looked at the object, so that this shows nothing")
	}
	if len(all.Mutating()) > 0 || len(all.Events()) > 0 {
		s.T.Errorf("within %s: %s, Events: %s", contestDuration, all.Mutating(), all.Events())
	}
}

// expectTakenOver deletes the resource that owns the object, and expects the other one to create its
// own, and to delete it when it is deleted itself.
func (s *env) expectTakenOver(has, lacks *unstructured.Unstructured) {
	s.T.Helper()
	s.Delete(has)
	s.ExpectGone(has)
	s.ExpectResourceReady(lacks)
	s.ExpectData("contested", "text", lacks.GetName())
	s.Delete(lacks)
	s.ExpectFinished(lacks, "ConfigMap")
}

func TestE6ObjectThatItsResourceLeftBehindIsAdoptedByAnother(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	spec := func(text string) map[string]any { return map[string]any{"text": text, "adopt": true, "keep": true} }
	r := newRivals(s, "leftbehind", spec("first"), spec("second"))
	before := s.Get("ConfigMap", "contested")
	s.Create(r.second.DeepCopy())
	s.ExpectNotReady(r.second, "OwnedByAnother", "Thing.leftbehind.example.com "+s.Namespace+"/first, which keeps it")
	s.Delete(r.first)
	s.ExpectGone(r.first)
	s.ExpectResourceReady(r.second)
	if after := s.ExpectData("contested", "text", "second"); after.GetUID() != before.GetUID() {
		t.Error("it is another object")
	}
}

// Both resources may find no object, and both may write.
func TestE6TwoResourcesThatAppearAtOnceSettle(t *testing.T) {
	t.Parallel()
	for name, adopt := range map[string]bool{"neither adopts": false, "both adopt": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, "atonce"+strings.ReplaceAll(name, " ", ""), contestingBody)
			if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
				t.Fatal(err)
			}
			both := []*unstructured.Unstructured{
				p.Thing(s.Env, "first", map[string]any{"text": "first", "adopt": adopt}), p.Thing(s.Env, "second", map[string]any{"text": "second", "adopt": adopt}),
			}
			for _, u := range both {
				s.Create(u.DeepCopy())
			}
			s.StartOperator(p.Dir)
			var has, lacks *unstructured.Unstructured
			harness.Eventually(t, "one of them to have the object", func() error {
				has, lacks = both[0], both[1]
				object := s.ExpectObject(s.Ref("ConfigMap", "contested"), "to exist", harness.Exists)
				if controllerOf(object) == "second" {
					has, lacks = both[1], both[0]
				}
				got, err := harness.GetOrNil(t.Context(), lacks)
				if err == nil && harness.Condition(got, "Ready")["reason"] != "OwnedByAnother" {
					err = harness.ErrNotYet
				}
				return err
			})
			s.ExpectResourceReady(has)
			s.expectNoWrites()
			if got := s.ExpectData("contested", "text", has.GetName()); controllerOf(got) != has.GetName() {
				t.Errorf("its controller is %s", controllerOf(got))
			}
		})
	}
}
