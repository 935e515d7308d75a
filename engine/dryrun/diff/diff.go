// Package diff compares two states of an object field by field, for people to read.
//
//	m := &diff.Mask{}             // masks the values of Secrets
//	m.Learn(secrets...)
//	m.Fields(before, after)       // the fields that differ
//
// It leaves out the status, the metadata that the API server maintains, and the engine's own
// labels and annotations. Values are quoted and have no control characters; long ones are
// truncated around the first difference.
package diff

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
)

// A Field is a field that differs, with its values as text in which Secrets are masked.
type Field struct {
	// Path is its path, such as spec.template.spec.containers[name=web].image.
	Path string `json:"path"`
	// Before and After are its values, or "" if there is none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// String returns the field on one line.
func (f Field) String() string { return f.Path + ": " + orNone(f.Before) + " -> " + orNone(f.After) }

func orNone(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}

// Fields returns the fields that differ between two states of an object, in order. If one state
// is nil, it returns all fields of the other. It learns the values of a Secret first.
func (m *Mask) Fields(before, after *unstructured.Unstructured) []Field {
	m.Learn(before, after)
	found := &shownFields{mask: m, secret: mayBeSecret(before) || mayBeSecret(after)}
	c := &comparison{created: before == nil, found: found}
	c.compare(nil, c.relevant(before), c.relevant(after))
	return found.fields
}

// A comparison compares two states of one object.
type comparison struct {
	created bool
	found   finder
	// differences is how many were found.
	differences int
}

// A finder is called with what a comparison finds.
type finder interface {
	// add is called for a field with two values, nil for none.
	add(at path, before, after any)
	// reordered is called for a list whose items have another order, and nothing else that is new.
	reordered(at path)
}

// shownFields are the differences as they are shown.
type shownFields struct {
	mask   *Mask
	secret bool
	fields []Field
}

// serverMetadata is the metadata that the API server maintains.
var serverMetadata = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}

// ownMarks is the prefix of the engine's annotations and labels.
const ownMarks = "operetta.dev/"

// relevant returns the part of an object that is compared.
func (c *comparison) relevant(u *unstructured.Unstructured) any {
	if u == nil {
		return nil
	}
	out := without(u, append([]string{"name", "namespace"}, serverMetadata...)...)
	delete(out, "status")
	meta, _ := out["metadata"].(map[string]any)
	if c.created {
		delete(meta, "ownerReferences") // a created object always refers to its owner
	}
	for _, field := range []string{"annotations", "labels"} {
		all, _ := meta[field].(map[string]any)
		kept := maps.Clone(all)
		maps.DeleteFunc(kept, func(name string, _ any) bool {
			return name == corev1.LastAppliedConfigAnnotation || name == ownership.AppliedAnnotation || name == ownership.SaltAnnotation || c.created && strings.HasPrefix(name, ownMarks)
		})
		if delete(meta, field); len(kept) > 0 {
			meta[field] = kept
		}
	}
	if len(meta) == 0 {
		delete(out, "metadata")
	}
	return out
}

// without returns the fields of an object that say nothing of its kind, without some of its metadata.
func without(u *unstructured.Unstructured, metadata ...string) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "apiVersion")
	delete(out, "kind")
	if all, is := out["metadata"].(map[string]any); is {
		meta := maps.Clone(all)
		for _, field := range metadata {
			delete(meta, field)
		}
		out["metadata"] = meta
	}
	return out
}

// compare adds the fields that differ at a path and below it.
func (c *comparison) compare(at path, before, after any) {
	if equality.Semantic.DeepEqual(before, after) {
		return
	}
	a, isMapA := before.(map[string]any)
	b, isMapB := after.(map[string]any)
	x, isListA := before.([]any)
	y, isListB := after.([]any)
	switch {
	case (isMapA || before == nil) && (isMapB || after == nil) && len(a)+len(b) > 0:
		both := map[string]any{}
		maps.Copy(both, a)
		maps.Copy(both, b)
		for _, k := range slices.Sorted(maps.Keys(both)) {
			c.compare(at.field(k), a[k], b[k])
		}
	case (isListA || before == nil) && (isListB || after == nil) && len(x)+len(y) > 0 && structs(x) && structs(y):
		c.compareItems(at, x, y)
	default:
		c.differences++
		c.found.add(at, before, after)
	}
}

// structs reports whether all items of a list are structs.
func structs(list []any) bool {
	return !slices.ContainsFunc(list, func(item any) bool { _, ok := item.(map[string]any); return !ok })
}

// compareItems compares two lists of structs: by the field that identifies their items, or else
// by index.
func (c *comparison) compareItems(at path, before, after []any) {
	key, found := keyOf(before, after)
	if !found {
		for i := range max(len(before), len(after)) {
			c.compare(at.index(i), item(before, i), item(after, i))
		}
		return
	}
	var names []string
	keys := map[string]any{}
	byName := func(list []any) map[string]any {
		out := map[string]any{}
		for _, entry := range list {
			m, _ := entry.(map[string]any)
			name := show(m[key])
			keys[name] = m[key]
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			out[name] = entry
		}
		return out
	}
	a, b := byName(before), byName(after)
	unchanged := c.differences
	for _, name := range names {
		c.compare(at.item(key, name, keys[name]), a[name], b[name])
	}
	if c.differences == unchanged {
		c.differences++
		c.found.reordered(at)
	}
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// keyOf returns the field that identifies the items of both lists, if there is one.
func keyOf(lists ...[]any) (string, bool) {
	for _, key := range []string{"name", "containerPort", "port", "mountPath", "key", "type", "uid", "topologyKey", "ip"} {
		if !slices.ContainsFunc(lists, func(list []any) bool { return !identifies(key, list) }) {
			return key, true
		}
	}
	return "", false
}

// identifies reports whether each item of a list has another value of a field.
func identifies(key string, list []any) bool {
	seen := map[any]bool{}
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		switch v := m[key].(type) {
		case string, int64, float64:
			if seen[v] {
				return false
			}
			seen[v] = true
		default:
			return false
		}
	}
	return true
}

// reordered implements finder.
func (c *shownFields) reordered(at path) {
	c.fields = append(c.fields, Field{Path: c.mask.Text(at.String()), Before: "(an order)", After: "(another order)"})
}

// add implements finder.
func (c *shownFields) add(at path, before, after any) {
	c.fields = append(c.fields, c.field(at, before, after))
}

// field returns a field with two values as it is shown.
func (c *shownFields) field(at path, before, after any) Field {
	f := Field{Path: c.mask.Text(at.String())}
	switch {
	case c.secret && (at.begins("data") || at.begins("stringData")):
		f.Before, f.After = hidden(before), hidden(after)
		if before != nil && after != nil {
			f.After += " (another)"
		}
	default:
		f.Before, f.After = c.mask.pair(before, after)
	}
	return f
}

func hidden(value any) string {
	if value == nil {
		return ""
	}
	return mask
}
