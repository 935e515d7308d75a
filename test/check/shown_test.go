package check_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"operetta.dev/engine/check"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A showing says what shows a fault to a person who has the resource of a finding.
type showing string

// What shows a fault.
const (
	inRender showing = "render has the fault"
	// inTime: a state of the cluster does not show it, only what follows from it.
	inTime showing = "a rollout shows it"
	// nowhere: neither of them does.
	nowhere showing = "nothing shows it"
	// leadingThere: the types have found the fault, and vet says of the resource only that it leads there.
	leadingThere showing = "it leads there"
)

// shownBy says what shows a finding with its resource and its objects.
func shownBy(t *testing.T, p *program.Program, f check.Counterexample) showing {
	t.Helper()
	out, err := render.Render(t.Context(), p, render.Input{CR: f.Resource, Manifests: f.Live})
	if err != nil {
		t.Fatalf("%s: %v", f.Fault, err)
	}
	if slices.ContainsFunc(slices.Concat(out.Invalid, out.Faults, out.Refused), func(o fault.Fault) bool { return isSame(o, f.Fault) }) {
		return inRender
	}
	if isPlayedOut(t, p, f) {
		return inTime
	}
	return nowhere
}

// isSame reports whether a fault is the one of a finding: in the same place, or in the same field.
func isSame(a, b fault.Fault) bool {
	return a.Position.File != "" && a.Position.File == b.Position.File && a.Position.Line == b.Position.Line || a.Path != "" && a.Path == b.Path
}

// isOf reports whether a fault is about a component.
func isOf(f fault.Fault, component string) bool {
	parts := strings.SplitN(f.Path, ".", 3)
	return len(parts) > 1 && (parts[0] == "components" || parts[0] == "live") && parts[1] == component
}

// isPlayedOut reports whether the rollout of a resource ends without rest, or with the component of the fault undone.
func isPlayedOut(t *testing.T, p *program.Program, f check.Counterexample) bool {
	t.Helper()
	w := dryrun.New(types.NamespacedName{}, p)
	for _, o := range f.Live {
		u := (&unstructured.Unstructured{Object: o}).DeepCopy()
		if u.GetAnnotations()[ownership.OwnerAnnotation] != "" {
			continue // the rollout makes it
		}
		if _, err := w.Put(u); err != nil {
			return false // its kind is not known here
		}
	}
	put, err := w.Put((&unstructured.Unstructured{Object: f.Resource}).DeepCopy())
	if err != nil {
		return false
	}
	ref := cluster.RefOf(put)
	if err := w.Run(t.Context(), func(dryrun.Step) {}); err != nil {
		return true
	}
	d, err := w.Preview(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	ready, _ := w.Ready(ref)
	return !ready && slices.ContainsFunc(d.Components, func(c rollout.ComponentPreview) bool {
		return !c.Done() && c.State != status.Excluded && isOf(f.Fault, c.Name)
	})
}
