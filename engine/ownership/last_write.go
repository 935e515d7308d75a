package ownership

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/redact"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A LastWrite is the last write of a field manager to an object.
type LastWrite struct {
	Manager, Operation, Subresource string
	Time                            time.Time
	// Fields are some of the fields that the manager owns since then, and More is how many are left out. Their values are no
	// part of them, and the keys of what a Secret holds are masked.
	Fields []string
	More   int
}

// NewestWrite returns the last write to a live object by anybody but the engine, and false if there is none. Of its fields
// it returns some at most.
func NewestWrite(live *unstructured.Unstructured, fields int) (LastWrite, bool) {
	var out LastWrite
	found, sets := -1, FieldSets(live)
	for i, m := range ManagedFields(live) {
		if !cluster.OfEngine(m.Manager) && m.Time != nil && (found < 0 || m.Time.After(out.Time)) {
			found, out = i, LastWrite{Manager: m.Manager, Operation: string(m.Operation), Subresource: m.Subresource, Time: m.Time.UTC()}
		}
	}
	if found < 0 || sets[found] == nil {
		return out, found >= 0
	}
	secret := object.MayBeSecret(live.GetKind())
	for path := range sets[found].Leaves().All() {
		if len(out.Fields) == fields {
			out.More++
			continue
		}
		out.Fields = append(out.Fields, textOf(withoutValues(path, secret)))
	}
	return out, true
}

// withoutValues returns a path without the values that are elements of it: a set names its items by what they are.
func withoutValues(path fieldpath.Path, secret bool) fieldpath.Path {
	out := make(fieldpath.Path, 0, len(path))
	masked := "[" + redact.Mask + "]"
	for i, at := range path {
		if at.Value != nil {
			return out // it is the list that was written
		}
		if secret && i == 1 && path[0].FieldName != nil && (*path[0].FieldName == "data" || *path[0].FieldName == "stringData") {
			return append(out, fieldpath.PathElement{FieldName: &masked})
		}
		out = append(out, at)
	}
	return out
}
