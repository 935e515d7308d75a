package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/reconcile"
)

// maxGiven is how often inputs are put into the cluster that others lead to.
const maxGiven = 5

// giveInputs puts the objects of the inputs into the cluster whose names are known by now, as somebody else has made them. It
// reports whether there are any that were not there before.
func (t *trial) giveInputs(ctx context.Context) (bool, error) {
	given := false
	for range maxGiven {
		d, err := t.preview(ctx)
		if err != nil {
			return given, err
		}
		more := false
		for _, in := range d.Rollout.Inputs {
			put, err := t.giveInput(in, d)
			if err != nil {
				return given, err
			}
			more = more || put
		}
		if !more {
			return given, nil
		}
		given = true
	}
	return given, nil
}

// giveInput puts the objects of one input. What the package renders itself is left to it.
func (t *trial) giveInput(in program.Input, d reconcile.Preview) (bool, error) {
	if in.Missing != "" || in.Kind.Kind == "" {
		return false, nil
	}
	put := false
	for i, fields := range t.inputs[in.Name] {
		u := inputObject(in, i, fields)
		if t.serve(in) != nil || t.world.SetNamespace(u, t.ref.Namespace) != nil {
			return false, nil //nolint:nilerr // the package waits for it
		}
		ref := cluster.RefOf(u).Identity()
		shown := u
		switch had := t.given[ref]; {
		case had != nil && t.merged[ref][in.Name]:
			continue
		case had != nil:
			shown = &unstructured.Unstructured{Object: merge(had, u.Object)}
		case t.world.Get(ref) != nil || renders(d, ref):
			continue
		}
		if err := t.putInput(ref, shown); err != nil {
			return put, err
		}
		if t.merged[ref] == nil {
			t.merged[ref] = map[string]bool{}
		}
		t.merged[ref][in.Name] = true
		put = true
	}
	return put, nil
}

// serve serves the kind of an input that nobody here knows, as if its definition were there.
func (t *trial) serve(in program.Input) error {
	_, err := t.world.Scope(in.Kind)
	if cluster.IsKindNotServed(err) {
		t.world.Cluster.Serve(in.Kind.GroupKind(), cluster.Namespaced)
		_, err = t.world.Scope(in.Kind)
	}
	return err
}

// inputObject returns the object of a number that an input names or selects.
func inputObject(in program.Input, number int, fields map[string]any) *unstructured.Unstructured {
	u := (&unstructured.Unstructured{Object: maps.Clone(fields)}).DeepCopy()
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	u.SetGroupVersionKind(in.Kind)
	u.SetNamespace(in.Namespace)
	u.SetName(in.Object)
	if in.Object == "" {
		u.SetName(fmt.Sprintf("%s-%d", dashed(in.Name), number+1))
		labels := maps.Clone(u.GetLabels())
		if labels == nil && len(in.Selector) > 0 {
			labels = map[string]string{}
		}
		maps.Copy(labels, in.Selector)
		u.SetLabels(labels)
	}
	return u
}

// dashed returns the name of an input as one of an object.
func dashed(name string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	return cmp.Or(out, "input")
}

// putInput puts an object as it was read from a cluster. It is not validated: it has only what the package reads.
func (t *trial) putInput(ref cluster.Ref, u *unstructured.Unstructured) error {
	t.given[ref] = u.DeepCopy().Object
	if live := t.world.Get(ref); live != nil {
		if err := t.world.Cluster.DeleteInBackground(ref, live.GetUID()); err != nil {
			return err
		}
	}
	t.uids++
	u.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", t.uids)))
	t.world.ExcludeFromControllers(ref)
	_, err := t.world.Put(u)
	return err
}

// merge returns a value with the fields of another one that it does not have.
func merge(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for name, value := range b {
		had, has := out[name]
		x, isMap := had.(map[string]any)
		y, areBoth := value.(map[string]any)
		switch {
		case !has:
			out[name] = value
		case isMap && areBoth:
			out[name] = merge(x, y)
		}
	}
	return out
}

// renders reports whether a package renders an object.
func renders(d reconcile.Preview, ref cluster.Ref) bool {
	for _, c := range d.Components {
		for _, o := range c.Objects {
			if o.Manifest != nil && cluster.RefOf(o.Manifest).Identity() == ref {
				return true
			}
		}
	}
	return false
}

// inputsGiven returns the objects of inputs, as a person writes them, in order.
func (t *trial) inputsGiven() []map[string]any {
	var out []map[string]any
	for _, u := range t.world.Cluster.Objects() {
		if given := t.given[cluster.RefOf(u).Identity()]; given != nil {
			out = append(out, given)
		}
	}
	return out
}

// neverThere reports whether what is missing of an input never is there, or is not needed as the package says itself. It
// notes where it is referred to, and what to do about it.
func (t *trial) neverThere(w *wait, r syntax.Reference) bool {
	input := r.Path[1]
	if t.neverNamed(input) {
		w.position = r.Position
		w.hint = fmt.Sprintf("for this resource, input %s has no name: refer to it only under the condition that it has one", input)
		return true
	}
	if d, is := t.provided(w.component.Name, r); is {
		w.position = r.Position
		w.hint = fmt.Sprintf("%s provides for the absence of %s, which is waited for here; do so here, too", d.Position, syntax.Reference{Path: d.Path})
		return true
	}
	return false
}

// neverNamed reports whether an input cannot be named, because of what is not in the spec: whatever is in the cluster, it
// does not appear.
func (t *trial) neverNamed(input string) bool {
	at := slices.IndexFunc(t.last.Rollout.Inputs, func(i program.Input) bool { return i.Name == input })
	if at < 0 || t.last.Rollout.Inputs[at].Missing == "" {
		return false
	}
	by := t.program.Syntax().Decides(input)
	return len(by) > 0 && !slices.ContainsFunc(by, func(r syntax.Reference) bool { return r.Path[0] != "cr" })
}

// provided returns the place where the same component provides for the absence of what it waits for, or of what is
// around that.
func (t *trial) provided(component string, missing syntax.Reference) (syntax.DefaultedField, bool) {
	within := func(a, b []string) bool { return len(a) <= len(b) && slices.Equal(a, b[:len(a)]) }
	for _, r := range t.program.Syntax().References() {
		if r.Position != missing.Position || !within(missing.Path, r.Path) {
			continue
		}
		for _, d := range t.defaulted {
			if d.Component == component && d.Position != r.Position && within(missing.Path, d.Path) && within(d.Path, r.Path) {
				return d, true
			}
		}
	}
	return syntax.DefaultedField{}, false
}
