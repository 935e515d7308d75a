package capsule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/object"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/redact"
)

// A Decision is what one reconcile does in memory.
type Decision struct {
	// Writes are the objects that it creates, changes and deletes, in order.
	Writes []ObjectWrite `json:"writes"`
	// Status is that of the resource afterwards, or nil if it is gone.
	Status map[string]any `json:"status,omitempty"`
	// Failed is why it is retried.
	Failed string `json:"failed,omitempty"`
}

// An ObjectWrite is what becomes of one object.
type ObjectWrite struct {
	Verb   cluster.Operation `json:"verb"`
	Object string            `json:"object"`
	// Manifest is the object afterwards, without what only the API server sets, or nil for a deleted one.
	Manifest map[string]any `json:"manifest,omitempty"`
}

// Equal reports whether two decisions are the same in every byte.
func (d Decision) Equal(other Decision) bool {
	a, errA := json.Marshal(d)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && string(a) == string(b)
}

// convertNumbers gives numbers that were read from JSON the types that they have in objects.
func (d Decision) convertNumbers() error {
	err := utiljson.ConvertMapNumbers(d.Status, 0)
	for _, w := range d.Writes {
		err = errors.Join(err, utiljson.ConvertMapNumbers(w.Manifest, 0))
	}
	return err
}

// Decide makes the decision of a capsule again with a version of the package, which may be another one than that of
// the capsule. It also returns what the version asks for and the capsule lacks. It errors if the capsule cannot be
// read, if the package is for another kind, or if the package cannot be evaluated.
func (c *Capsule) Decide(ctx context.Context, v plan.Version) (Decision, []string, error) {
	d, err := plan.DecodeDump(bytes.NewReader(c.Objects))
	if err != nil {
		return Decision{}, nil, fmt.Errorf("what the capsule has read: %w", err)
	}
	out, err := c.decide(ctx, d, v)
	return out, d.Missing("the capsule", "replay"), err
}

// decide reconciles the resource once on a snapshot.
func (c *Capsule) decide(ctx context.Context, from plan.Snapshot, v plan.Version) (Decision, error) {
	if got, want := v.Program.GroupVersionKind().GroupKind(), c.Resource.Ref().GroupKind(); got != want {
		return Decision{}, fmt.Errorf("the package is for %s, and the capsule has a %s", got, want)
	}
	resources, err := from.Resources(ctx, v.Program.GroupVersionKind())
	if err != nil {
		return Decision{}, err
	}
	at := slices.IndexFunc(resources, func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() == c.Resource.Namespace && u.GetName() == c.Resource.Name
	})
	if at < 0 {
		return Decision{}, errors.New("the capsule does not have its resource")
	}
	w := dryrun.New(c.configMap(), v.Program)
	w.SetControllers(dryrun.ActNever)
	w.AllowAnnotations(c.Allow)
	w.ReadThrough(from, c.Taken.Add(-time.Second), false) // a round begins a second later
	by := &noting{Package: v.Evaluator()}
	w.EvaluateWith(v.Program.GroupVersionKind().GroupKind(), by)
	put, err := w.Put(resources[at])
	if err != nil {
		return Decision{}, err
	}
	out := Decision{Writes: []ObjectWrite{}}
	err = w.Round(ctx, func(s dryrun.Step) {
		for _, e := range s.Changes {
			if !marksSecret(e) {
				out.Writes = append(out.Writes, writeOf(e))
			}
		}
		if s.Err != nil {
			out.Failed = s.Err.Error()
		}
	})
	if err == nil {
		err = by.unavailable
	}
	if u := w.Get(cluster.RefOf(put)); u != nil {
		out.Status, _, _ = unstructured.NestedMap(u.Object, "status")
	}
	out.maskDigests()
	return out, err
}

// maskDigests masks what a decision has of the digests of Secrets. They are made in memory with a salt that everybody knows,
// so that the value of a Secret that the package has written, which the decision masks, could be guessed.
func (d Decision) maskDigests() {
	for _, w := range d.Writes {
		redact.MaskSecret(w.Manifest)
	}
	inventory, _, _ := unstructured.NestedFieldNoCopy(d.Status, "inventory")
	groups, _ := inventory.([]any)
	for _, g := range groups {
		group, _ := g.(map[string]any)
		objects, _ := group["objects"].([]any)
		for _, o := range objects {
			entry, _ := o.(map[string]any)
			if _, has := entry["digest"]; has && object.MayBeSecretIn(entry) {
				entry["digest"] = redact.Mask
			}
		}
	}
}

// A noting package notes that it could not be evaluated, in which case there is no decision.
type noting struct {
	reconcile.Package

	unavailable error
}

// Evaluate implements rollout.Evaluator.
func (n *noting) Evaluate(s program.Session) (program.Rollout, error) {
	out, err := n.Package.Evaluate(s)
	if gone, is := errors.AsType[*program.UnavailableError](err); is {
		n.unavailable = gone
	}
	return out, err
}

// marksSecret reports whether a change writes nothing but the marks of the engine to a Secret, and values that it has
// already. A capsule has other values than the cluster and none of these marks, so this says nothing of what the
// operator does.
func marksSecret(e cluster.ObjectChange) bool {
	if e.Operation != cluster.Updated || !object.IsSecret(e.Ref.GroupKind()) {
		return false
	}
	return len(fields(asStored(e.Before), asStored(e.Object), "")) == 0
}

// asStored returns a Secret as an API server stores it, with masks for its values: it has one map of them, or none.
func asStored(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	out := u.DeepCopy()
	redact.MaskSecret(out.Object)
	values := map[string]any{}
	for _, field := range []string{"data", "stringData"} {
		some, _ := out.Object[field].(map[string]any)
		maps.Copy(values, some)
		delete(out.Object, field)
	}
	if len(values) > 0 {
		out.Object["data"] = values
	}
	return out
}

// writeOf returns a change as a Write. It has masks for the values of a Secret: a package may render some, and a capsule
// has none.
func writeOf(e cluster.ObjectChange) ObjectWrite {
	out := ObjectWrite{Verb: e.Operation, Object: e.Ref.String()}
	if e.Operation != cluster.Deleted && e.Object != nil {
		u := e.Object.DeepCopy()
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		redact.MaskSecret(u.Object)
		out.Manifest = u.Object
	}
	return out
}
