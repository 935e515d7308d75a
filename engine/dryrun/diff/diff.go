// Package diff says, field by field and for people, what a write changes of an object.
//
//	m := &diff.Mask{}             what must not be shown
//	m.Learn(secrets...)           and is known from here on
//	m.Fields(before, after)       what differs
//
// What nobody asked about is left out: the status, what the API server counts and notes
// by itself, and the engine's own marks. Values are quoted, without control characters,
// and long ones are cut around the place where they differ.
package diff

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
)

// A Field is one field that differs, with its values as they are shown.
type Field struct {
	// Path is where it is: spec.template.spec.containers[name="web"].image.
	Path string
	// Before and After are its values; "" is none.
	Before, After string
}

// String returns the field on one line.
func (f Field) String() string { return f.Path + ": " + orNone(f.Before) + " -> " + orNone(f.After) }

func orNone(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}

// Fields returns what differs between two states of an object, in order; either may be
// nil, when all of the other is returned. Secrets among them are learned.
func (m *Mask) Fields(before, after *unstructured.Unstructured) []Field {
	m.Learn(before, after)
	c := &comparison{mask: m, created: before == nil, secret: isSecret(before) || isSecret(after)}
	c.compare(nil, c.relevant(before), c.relevant(after))
	return c.fields
}

// comparison is that of two states of one object.
type comparison struct {
	mask            *Mask
	created, secret bool
	fields          []Field
}

// unasked is the metadata that the API server keeps by itself.
var unasked = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}

// lastApplied is kubectl's copy of a manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// ownMarks begins the names of the engine's annotations and labels.
const ownMarks = "operetta.dev/"

// relevant returns what is compared of an object.
func (c *comparison) relevant(u *unstructured.Unstructured) any {
	if u == nil {
		return nil
	}
	out := maps.Clone(u.Object)
	for _, field := range []string{"apiVersion", "kind", "status"} {
		delete(out, field)
	}
	meta := map[string]any{}
	if all, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(all)
	}
	for _, field := range append([]string{"name", "namespace"}, unasked...) {
		delete(meta, field)
	}
	if c.created {
		delete(meta, "ownerReferences") // it has its owner's
	}
	for _, field := range []string{"annotations", "labels"} {
		all, _ := meta[field].(map[string]any)
		kept := maps.Clone(all)
		maps.DeleteFunc(kept, func(name string, _ any) bool {
			return name == lastApplied || name == ownership.AppliedMark || name == ownership.SaltMark || c.created && strings.HasPrefix(name, ownMarks)
		})
		if meta[field] = kept; len(kept) == 0 {
			delete(meta, field)
		}
	}
	if out["metadata"] = meta; len(meta) == 0 {
		delete(out, "metadata")
	}
	return out
}

// compare notes what differs at a path.
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
		for _, k := range slices.Compact(slices.Sorted(chain(maps.Keys(a), maps.Keys(b)))) {
			c.compare(at.field(k), a[k], b[k])
		}
	case (isListA || before == nil) && (isListB || after == nil) && len(x)+len(y) > 0 && structs(x) && structs(y):
		c.compareItems(at, x, y)
	default:
		c.note(at, before, after)
	}
}

func chain(sequences ...iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, seq := range sequences {
			for s := range seq {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// structs reports whether all items of a list are structs.
func structs(list []any) bool {
	return !slices.ContainsFunc(list, func(item any) bool { _, ok := item.(map[string]any); return !ok })
}

// compareItems compares two lists of structs: by what tells their items apart, or else by
// their order.
func (c *comparison) compareItems(at path, before, after []any) {
	key, found := keyOf(before, after)
	if !found {
		for i := range max(len(before), len(after)) {
			c.compare(at.index(i), item(before, i), item(after, i))
		}
		return
	}
	var names []string
	byName := func(list []any) map[string]any {
		out := map[string]any{}
		for _, entry := range list {
			m, _ := entry.(map[string]any)
			name := show(m[key])
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			out[name] = entry
		}
		return out
	}
	a, b := byName(before), byName(after)
	moved := len(c.fields)
	for _, name := range names {
		c.compare(at.item(key, name), a[name], b[name])
	}
	if len(c.fields) == moved {
		c.fields = append(c.fields, Field{Path: at.String(), Before: "(an order)", After: "(another order)"})
	}
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// keyOf returns the field that tells the items of both lists apart, if there is one.
func keyOf(lists ...[]any) (string, bool) {
	for _, key := range []string{"name", "containerPort", "port", "mountPath", "key", "type", "uid", "topologyKey", "ip"} {
		if !slices.ContainsFunc(lists, func(list []any) bool { return !tellsApart(key, list) }) {
			return key, true
		}
	}
	return "", false
}

func tellsApart(key string, list []any) bool {
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

// note notes one field.
func (c *comparison) note(at path, before, after any) {
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
	c.fields = append(c.fields, f)
}

func hidden(value any) string {
	if value == nil {
		return ""
	}
	return mask
}
