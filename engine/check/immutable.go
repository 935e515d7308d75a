package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// maxChanged is how many changed fields of the spec a message names.
const maxChanged = 3

// A specChange is a change of the spec that was made in a trial, and that the schema allows.
type specChange struct {
	from, to any
	// given are the objects of inputs before it.
	given map[cluster.Ref]map[string]any
}

// changeSpec changes the spec, and lets everything act. It returns nil if the schema forbids the change, or if the resource is
// gone.
func changeSpec(ctx context.Context, t *trial, spec any) (*specChange, error) {
	u := t.world.Get(t.ref)
	if u == nil {
		return nil, nil
	}
	done := &specChange{from: u.Object["spec"], to: spec, given: maps.Clone(t.given)}
	next := u.DeepCopy()
	next.Object["spec"] = spec
	if _, err := t.server.Admit(next.Object, u.Object); err != nil {
		return nil, nil //nolint:nilerr // the schema forbids the change
	}
	if _, err := t.world.Cluster.Put("person", next); err != nil {
		return nil, err
	}
	return done, t.run(ctx)
}

// reportImmutable reports the fields of objects that the API server never changes, and that a change of the spec would have
// changed. The values do not matter: as a new object it would accept each of them.
func (s *specChange) reportImmutable(ctx context.Context, t *trial) {
	for ref, object := range s.given {
		if !equal(object, t.given[ref]) {
			return // an input has changed, too
		}
	}
	for _, c := range t.last.Components {
		if c.Reason != status.ReasonObjectRejected {
			continue
		}
		for _, o := range c.Objects {
			for _, field := range immutableFields(ctx, t.world.Cluster, o) {
				at := cmp.Or(t.program.Locate(t.evaluator.last, c.Name, o.Object, field), o.Position)
				t.out.add(problem{live: t.inputsGiven(), fault: fault.Fault{
					Position: at,
					Path:     strings.TrimSuffix("components."+c.Name+".objects."+o.Object+"."+field, "."),
					Message:  "a user may change " + s.text() + ", but from then on the API server refuses the object: the field is immutable",
					Hint:     hintOfImmutable(o),
				}})
			}
		}
	}
}

// immutableFields returns the fields for which the API server refuses to change an object that it would accept as a new one.
func immutableFields(ctx context.Context, in cluster.Cluster, o rollout.ObjectPreview) []string {
	if o.Live == nil || o.Manifest == nil || o.Policy.Apply == program.RecreateOnImmutable || vanishes(o.Live) {
		return nil
	}
	err := o.Refusal(ctx, in)
	if !cluster.RefusesChange(err) || in.Probe(ctx, o.Manifest) != nil {
		return nil
	}
	fields := fieldsOf(err)
	slices.Sort(fields)
	return slices.Compact(fields)
}

// vanishes reports whether an object is deleted by itself once it has ended, so that it is refused only until then.
func vanishes(u *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "ttlSecondsAfterFinished")
	return u.GetKind() == "Job" && found
}

// hintOfImmutable says what to do about an object that cannot be changed as the spec can. To recreate a claim would delete
// what is stored.
func hintOfImmutable(o rollout.ObjectPreview) string {
	const forbid = "@crd(immutable) on the field of the spec, or a rule with oldSelf, forbids the change"
	if o.Manifest.GetKind() == "PersistentVolumeClaim" {
		return forbid
	}
	return fmt.Sprintf("policy: %s: apply: %q deletes the object and recreates it; %s", o.Object, program.RecreateOnImmutable, forbid)
}

// text says which fields are changed, and their values.
func (s *specChange) text() string {
	changed := fieldChanges("spec", plainJSON(s.from), plainJSON(s.to))
	text := strings.Join(changed[:min(len(changed), maxChanged)], " and ")
	if more := len(changed) - maxChanged; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// fieldChanges returns which fields differ in two values, as texts.
func fieldChanges(path string, a, b any) (out []string) {
	if equal(a, b) {
		return nil
	}
	x, isMap := a.(map[string]any)
	y, stays := b.(map[string]any)
	if !isMap || !stays {
		return []string{fmt.Sprintf("%s from %s to %s", path, shown(a, a != nil), shown(b, b != nil))}
	}
	names := maps.Clone(x)
	maps.Copy(names, y)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, fieldChanges(path+"."+name, x[name], y[name])...)
	}
	return out
}
