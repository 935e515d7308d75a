package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
)

// crashed is how many writes of a phase an operator makes before it is killed.
var crashed = []int{1, 3, 5}

// TestA1OperatorThatIsKilledAnywhereLeavesWhatAnUndisturbedOneDoes is the sample of
// A1 on a control plane; the sweep over every write is in engine/lifecycle.
func TestA1OperatorThatIsKilledAnywhereLeavesWhatAnUndisturbedOneDoes(t *testing.T) {
	t.Parallel()
	calm := crashRun{kill: ""}.run(t, "undisturbed", 0)
	for _, phase := range []string{"create", "update", "delete"} {
		for _, after := range crashed {
			t.Run(fmt.Sprintf("%s after %d writes", phase, after), func(t *testing.T) {
				t.Parallel()
				got := crashRun{kill: phase}.run(t, fmt.Sprintf("%s%d", phase, after), after)
				for _, stage := range []string{"create", "update", "delete"} {
					if !maps.Equal(got[stage], calm[stage]) {
						t.Errorf("after %s: %v, undisturbed %v", stage, got[stage], calm[stage])
					}
				}
			})
		}
	}
}

// crashRun is the life of one resource, in one phase of which its operator is killed.
type crashRun struct{ kill string }

// run returns what was there after each phase: the digest of each object.
func (c crashRun) run(t *testing.T, name string, after int) map[string]map[string]string {
	t.Helper()
	s := newSite(t)
	p := newSmall(t, "crash"+name, strings.Replace(layered, `"base-\(cr.metadata.name)"`, `"base-\(cr.metadata.name)-\(cr.spec.text)"`, 1))
	s.operate(p.dir)
	cr := p.thing(s, "shop", map[string]any{"text": "a"})
	out := map[string]map[string]string{}
	start := mark(t)
	for _, step := range []struct {
		phase string
		act   func()
		done  func()
	}{
		{"create", func() { s.create(cr.DeepCopy()) }, func() { s.expectAllReady(cr) }},
		{"update", func() { s.patch(cr, spec(map[string]any{"text": "b"})) }, func() { s.expectAllReady(cr) }},
		{"delete", func() { s.delete(cr) }, func() { s.expectFinished(cr, layeredKinds...) }},
	} {
		from := mark(t)
		step.act()
		if step.phase == c.kill {
			s.killAfter(from, after, cr)
			s.operate(p.dir)
		}
		step.done()
		out[step.phase] = s.contents()
	}
	s.expectCreatedOnce(start)
	return out
}

// killAfter kills the operator once it has made some writes, or is done.
func (s *site) killAfter(from controlplane.AuditMark, writes int, cr *unstructured.Unstructured) {
	s.t.Helper()
	eventually(s.t, "writes of the operator", func() error {
		if n := len(s.operatorRequests(from).mutating()); n < writes {
			u, err := read(s.t.Context(), cr)
			if err == nil && (u == nil || ready(u) == nil) {
				return nil // it was faster
			}
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
	s.operator.kill()
	s.t.Logf("killed after: %s", s.operatorRequests(from).mutating())
}

// contents returns what the operator has applied: the digest of each object.
func (s *site) contents() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, kind := range layeredKinds {
		for _, u := range s.list(apiVersions[kind], kind) {
			if u.GetLabels()["operetta.dev/owner"] != "" {
				out[kind+" "+u.GetName()] = fmt.Sprint(u.GetAnnotations()["operetta.dev/component"], u.GetAnnotations()["operetta.dev/after"], u.Object["data"], len(u.GetOwnerReferences()))
			}
		}
	}
	return out
}

// expectCreatedOnce expects that no object was created twice since a mark.
func (s *site) expectCreatedOnce(from controlplane.AuditMark) {
	s.t.Helper()
	created := map[string]int{}
	for _, e := range s.operatorRequests(from).verbs("create", "patch") {
		if e.Code == 201 && !isEvent(e) && e.Namespace == s.namespace {
			created[e.Resource+"/"+e.Name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(created)) {
		if created[name] != 1 {
			s.t.Errorf("%s was created %d times", name, created[name])
		}
	}
	if len(created) != 5 {
		s.t.Errorf("%d objects were created, not 5: %v", len(created), created)
	}
}
