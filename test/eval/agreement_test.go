package eval

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/render"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
	"operetta.dev/engine/vet"
	"operetta.dev/test/machine"
)

// TestRenderAndDryRunAndReconcileAgree rolls every package of the repository out in memory,
// for generated resources that are edited once they are at rest, and asks at each state that the cluster comes to,
// and at that state after others have changed something: what render says of what kubectl would print, what the
// preview decides, what the next reconcile does, and what a dry run on a server would do. They have to say the
// same of every component, and of every object the same bytes.
func TestRenderAndDryRunAndReconcileAgree(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	packages := everyPackage(t)
	seen := newCoverage()
	begin := seen.expectAll(t, len(packages))
	for name, p := range packages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin()
			random := rand.New(rand.NewPCG(1, 2))
			turn := random.IntN(len(disturbances))
			for i, s := range vet.Samples(p) {
				ref, states := statesOf(t, random, seen, p, s.CR)
				for j, at := range states {
					at.name = fmt.Sprintf("resource %d %s, state %d", i, at.name, j)
					moment{at.name, p, ref, at.state, seen}.compare(t)
					turn++
					for _, disturbed := range disturb(t, random, turn, seen, p, ref, at) {
						moment{disturbed.name, p, ref, disturbed.state, seen}.compare(t)
					}
				}
			}
		})
	}
}

// A moment is a state of a cluster with a resource of a package, at which the ways are compared.
type moment struct {
	what    string
	program *program.Program
	ref     cluster.Ref
	state   state
	// seen counts what the comparison comes across.
	seen coverage
}

// compare compares what the ways say.
func (m moment) compare(t *testing.T) {
	t.Helper()
	w := worldOf(t, m.program, m.state)
	if w.Get(m.ref) == nil {
		t.Fatalf("%s: %s is gone, and nobody has deleted it", m.what, m.ref)
	}
	rendered := m.render(t, m.state)
	decided, err := w.Preview(t.Context(), m.ref)
	if err != nil {
		t.Fatalf("%s: %v", m.what, err)
	}
	m.compareFaults(t, rendered, decided)
	if diff := cmp.Diff(texts(decided.Components), texts(rendered.Components)); diff != "" {
		t.Errorf("%s: render says something else than the preview (-preview +render):\n%s", m.what, diff)
	}
	step := m.reconcile(t, w)
	switch {
	case !decided.Fault.IsZero() && len(decided.Components) == 0:
		m.compareStopped(t, decided.Fault, step)
	case len(step.Changes) == 0:
		m.compareStatus(t, rendered, step)
	default:
		m.compareWrites(t, rendered, step.Changes)
	}
	m.compareDeletes(t, w, step)
	m.compareServer(t, step)
}

// render returns what render says of the resource at a state, in which it exists.
func (m moment) render(t *testing.T, s state) render.Output {
	t.Helper()
	in := render.Input{}
	for _, u := range s {
		if cluster.RefOf(u) == m.ref {
			in.CR = u.Object
			continue
		}
		if u.GetKind() == "ConfigMap" && u.GetNamespace() == configMap.Namespace && u.GetName() == configMap.Name {
			in.Config = configOf(t, m.program, u)
		}
		in.Manifests = append(in.Manifests, u.Object)
	}
	out, err := render.Render(t.Context(), m.program, in)
	if err != nil {
		t.Fatalf("%s: %v", m.what, err)
	}
	return out
}

// reconcile reconciles the resource once, and returns what that did.
func (m moment) reconcile(t *testing.T, w *dryrun.World) dryrun.Step {
	t.Helper()
	out := dryrun.Step{Resource: m.ref} // one that changes nothing is not shown
	if err := w.Round(t.Context(), func(s dryrun.Step) {
		if s.Resource.Identity() == m.ref.Identity() {
			out = s
		}
	}); err != nil {
		t.Fatal(err)
	}
	out.Status, _, _ = unstructured.NestedMap(w.Get(m.ref).Object, "status")
	return out
}

// compareFaults compares what render and the preview say of the resource and of the package as a whole.
func (m moment) compareFaults(t *testing.T, rendered render.Output, decided reconcile.Preview) {
	t.Helper()
	want := faultTexts(render.Faults(decided))
	if invalid := decided.Rollout.Invalid; len(invalid) > 0 {
		want = faultTexts(invalid)
		if decided.Fault.Reason != status.ReasonInvalidSpec {
			t.Errorf("%s: the spec is invalid, and the preview has the fault %v", m.what, decided.Fault)
		}
	}
	if diff := cmp.Diff(want, append(faultTexts(rendered.Invalid), faultTexts(rendered.Faults)...)); diff != "" {
		t.Errorf("%s: render has other faults than the preview (-preview +render):\n%s", m.what, diff)
	}
	if len(want) == 0 && !decided.Fault.IsZero() {
		t.Errorf("%s: the preview has the fault %v, and render has none", m.what, decided.Fault)
	}
}

// compareStopped compares a fault that stops the rollout with what the reconcile does: nothing, and says so.
func (m moment) compareStopped(t *testing.T, fault status.Component, step dryrun.Step) {
	t.Helper()
	m.seen.met(aStop)
	for _, c := range step.Changes {
		t.Errorf("%s: the preview has the fault %v, and the reconcile does this: %s", m.what, fault, c)
	}
	said := ""
	if c := status.Condition(step.Status, status.ConditionReady); c != nil {
		said = shown(string(c.Status), c.Reason, c.Message)
	}
	if want := shown("False", string(fault.Reason), fault.Message); said != want {
		t.Errorf("%s: the preview has the fault\n%s\nand the status says\n%s", m.what, want, said)
	}
}

// compareStatus compares what render says with the status after a reconcile that writes nothing else.
func (m moment) compareStatus(t *testing.T, rendered render.Output, step dryrun.Step) {
	t.Helper()
	want, got := componentsOf(step.Status), map[string]string{}
	for _, c := range rendered.Components {
		if c.State != "" {
			got[c.Name] = shown(string(c.State), string(c.Reason), c.Message)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: render says something else than the status (-status +render):\n%s", m.what, diff)
	}
}

// componentsOf returns what a status says of each component.
func componentsOf(s map[string]any) map[string]string {
	components, _ := s["components"].([]any)
	out := map[string]string{}
	for _, c := range components {
		c, _ := c.(map[string]any)
		out[text(c["name"])] = shown(text(c["state"]), text(c["reason"]), text(c["message"]))
	}
	return out
}

// compareWrites compares what a reconcile writes with what render says of it: of each component once those
// before it are written, as it may refer to them.
func (m moment) compareWrites(t *testing.T, rendered render.Output, changes []cluster.ObjectChange) {
	t.Helper()
	component := -1
	for i, change := range changes {
		if isDeletion(change) || change.Ref.GroupVersionKind == patch.Kind {
			continue // compareDeletes is about the first, and a Patch is told what became of it
		}
		at, o := renderedAs(rendered, change.Ref)
		if i > 0 && at != component {
			rendered = m.render(t, after(m.state, changes[:i]))
			at, o = renderedAs(rendered, change.Ref)
		}
		component = at
		switch got := change.Object.GetAnnotations()[ownership.AppliedAnnotation]; {
		case at < 0:
			t.Errorf("%s: %s is written, and render does not have it", m.what, change.Ref)
		case isFollowed(changes, i):
		case got != o.Digest && !onlyMarks(o, change):
			t.Errorf("%s: %s is applied with the digest %s, and render has %s", m.what, change.Ref, got, o.Digest)
		}
	}
}

// isFollowed reports whether the next change is of the same object, and says what it is to be: an adoption, for example,
// takes two writes.
func isFollowed(changes []cluster.ObjectChange, i int) bool {
	return i+1 < len(changes) && changes[i+1].Ref.Identity() == changes[i].Ref.Identity() && !isDeletion(changes[i+1])
}

// onlyMarks reports whether a change restores the marks of an object whose content the package leaves as it is.
func onlyMarks(o rollout.ObjectPreview, change cluster.ObjectChange) bool {
	if change.Before == nil || o.Policy.Apply != "createOnly" || o.Action.Decision != ownership.Repair {
		return false
	}
	return change.Before.GetAnnotations()[ownership.AppliedAnnotation] == change.Object.GetAnnotations()[ownership.AppliedAnnotation]
}

// isDeletion reports whether a change deletes an object, at once or once its finalizers are gone.
func isDeletion(c cluster.ObjectChange) bool {
	return c.Operation == cluster.Deleted || c.Object.GetDeletionTimestamp() != nil
}

// after returns a state after changes.
func after(s state, changes []cluster.ObjectChange) state {
	for _, c := range changes {
		s = slices.DeleteFunc(slices.Clone(s), func(u *unstructured.Unstructured) bool { return cluster.RefOf(u).Identity() == c.Ref.Identity() })
		if c.Operation != cluster.Deleted {
			s = append(s, c.Object)
		}
	}
	return s
}

// renderedAs returns the index of the component of an object, and what render says of it, or -1.
func renderedAs(rendered render.Output, ref cluster.Ref) (int, rollout.ObjectPreview) {
	for i, c := range rendered.Components {
		for _, o := range c.Objects {
			if o.Ref().Identity() == ref.Identity() {
				return i, o
			}
		}
	}
	return -1, rollout.ObjectPreview{}
}

// texts returns what is decided about each component, with its objects byte for byte.
func texts(components []rollout.ComponentPreview) map[string][]string {
	out := map[string][]string{}
	for _, c := range components {
		if c.State == "" {
			continue // render lists the components also where nothing is decided about them
		}
		all := []string{shown(string(c.State), string(c.Reason), c.Message)}
		for _, o := range c.Objects {
			manifest, err := json.Marshal(o.Manifest.Object)
			if err != nil {
				all = append(all, err.Error())
			}
			all = append(all, string(o.Action.Decision)+" "+string(manifest))
		}
		out[c.Name] = all
	}
	return out
}

// faultTexts returns faults as people read them.
func faultTexts(faults fault.Faults) []string {
	var out []string
	for _, f := range faults {
		out = append(out, fault.Faults{f}.Error())
	}
	return out
}

// shown is what is said of a component. A status has room for so much of a message.
func shown(state, reason, message string) string {
	return state + " " + reason + " " + message[:min(len(message), 200)]
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
