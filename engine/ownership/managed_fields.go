package ownership

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// CompactManagedFields changes the fields of each entry of managedFields into text, for objects of a
// cache. As maps they are most of an object's memory. The text is shared with other objects that
// have the same. Such an object's managedFields are read by ManagedFields alone, and it must not be written.
func CompactManagedFields(u *unstructured.Unstructured) {
	for _, entry := range managedEntries(u) {
		fields, is := entry["fieldsV1"].(map[string]any)
		if !is {
			continue // there are none, or they are text already
		}
		if text, err := object.AppendJSON(nil, fields); err == nil {
			entry["fieldsV1"] = unique.Make(string(text)).Value()
		}
	}
}

// TakeFieldSets removes the fields that CompactManagedFields has changed into text from the entries of an
// object, and returns them in the order of the entries, for PutFieldSets. There is nil for an entry without.
func TakeFieldSets(u *unstructured.Unstructured) []any {
	entries := managedEntries(u)
	if !isCompact(entries) {
		return nil
	}
	out := make([]any, len(entries))
	for i, entry := range entries {
		if text := compactFields(entry); text != "" {
			out[i] = text
			delete(entry, "fieldsV1")
		}
	}
	return out
}

// StripFieldSets removes the fields from the managedFields of an object, and keeps the managers and times.
func StripFieldSets(u *unstructured.Unstructured) {
	for _, entry := range managedEntries(u) {
		delete(entry, "fieldsV1")
	}
}

// PutFieldSets puts back what TakeFieldSets has returned.
func PutFieldSets(u *unstructured.Unstructured, sets []any) {
	for i, entry := range managedEntries(u) {
		if i < len(sets) && sets[i] != nil {
			entry["fieldsV1"] = sets[i]
		}
	}
}

// managedEntries returns the managedFields of an object as they are.
func managedEntries(u *unstructured.Unstructured) []map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	list, _ := found.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if entry, is := item.(map[string]any); is {
			out = append(out, entry)
		}
	}
	return out
}

// isCompact reports whether the managedFields of an object have been through CompactManagedFields.
func isCompact(entries []map[string]any) bool {
	return slices.ContainsFunc(entries, func(entry map[string]any) bool { return compactFields(entry) != "" })
}

// compactFields returns the fields of an entry as text, or "".
func compactFields(entry map[string]any) string { return textAt(entry, "fieldsV1") }

// textAt returns a field that is text, or "".
func textAt(entry map[string]any, key string) string {
	text, _ := entry[key].(string)
	return text
}

// ManagedFields returns the managed fields of an object, whether it is from a cache or not.
func ManagedFields(u *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	entries := managedEntries(u)
	if !isCompact(entries) {
		return u.GetManagedFields()
	}
	out := make([]metav1.ManagedFieldsEntry, len(entries))
	for i, entry := range entries {
		out[i] = metav1.ManagedFieldsEntry{
			Manager: textAt(entry, "manager"), Operation: metav1.ManagedFieldsOperationType(textAt(entry, "operation")), APIVersion: textAt(entry, "apiVersion"),
			FieldsType: textAt(entry, "fieldsType"), Subresource: textAt(entry, "subresource"),
		}
		if at, err := time.Parse(time.RFC3339, textAt(entry, "time")); err == nil {
			out[i].Time = new(metav1.NewTime(at.Local())) //nolint:gosmopolitan // metav1.Time decodes so
		}
		if text := compactFields(entry); text != "" {
			out[i].FieldsV1 = &metav1.FieldsV1{}
			out[i].FieldsV1.SetRawString(text)
		}
	}
	return out
}

// ownedFields returns the fields that the engine owns by some operations, or nil.
func ownedFields(live *unstructured.Unstructured, operations ...metav1.ManagedFieldsOperationType) *fieldpath.Set {
	var out *fieldpath.Set
	add := func(set *fieldpath.Set) {
		switch {
		case set == nil:
		case out == nil:
			out = set
		default:
			out = out.Union(set)
		}
	}
	entries := managedEntries(live)
	if !isCompact(entries) {
		for _, m := range live.GetManagedFields() {
			if m.Manager == cluster.FieldManager && slices.Contains(operations, m.Operation) && m.Subresource == "" {
				add(FieldSet(m))
			}
		}
		return out
	}
	for _, entry := range entries {
		operation := metav1.ManagedFieldsOperationType(textAt(entry, "operation"))
		if textAt(entry, "manager") == cluster.FieldManager && slices.Contains(operations, operation) && textAt(entry, "subresource") == "" {
			add(fieldSetOf(compactFields(entry)))
		}
	}
	return out
}

// FieldSet returns the fields of an entry of managedFields, or nil if it has none that can be read. Others may have the
// same set, so it must not be changed.
func FieldSet(m metav1.ManagedFieldsEntry) *fieldpath.Set {
	if m.FieldsV1 == nil {
		return nil
	}
	return fieldSetOf(m.FieldsV1.GetRawString())
}

// fieldSetOf returns the fields in the text of an entry, or nil if they cannot be read.
func fieldSetOf(text string) *fieldpath.Set {
	if known, found := fieldSets.Get(text); found {
		set, _ := known.(*fieldpath.Set)
		return set
	}
	set := &fieldpath.Set{}
	if set.FromJSON(strings.NewReader(text)) != nil {
		set = nil
	}
	if len(text) <= longestFieldSet {
		fieldSets.Add(text, set)
	}
	return set
}

// fieldSets are the sets that were read last, by their text. A reconcile asks several times for those of an object, and other
// managers have the same of the objects of all resources. The engine's own have the UID of the owner in them.
var fieldSets = lru.New(rememberedFieldSets)

// rememberedFieldSets bounds fieldSets, and longestFieldSet is how long a text may be that is kept, in bytes. A set takes
// about ten times its text.
const rememberedFieldSets, longestFieldSet = 200, 4 << 10

// A syncKey identifies a manifest, and the fields that the engine owns of an object, by their content.
type syncKey struct {
	digest, apply string
	owned         [sha256.Size]byte
}

// syncKeyOf returns the key of a manifest and an object of a cache. It returns false for other objects.
func syncKeyOf(want Desired, live *unstructured.Unstructured) (syncKey, bool) {
	entries := managedEntries(live)
	if want.Digest == "" || !isCompact(entries) {
		return syncKey{}, false
	}
	buffer, _ := ownedTexts.Get().(*[]byte)
	text := (*buffer)[:0]
	for _, entry := range entries {
		if textAt(entry, "manager") == cluster.FieldManager && textAt(entry, "subresource") == "" {
			text = append(append(append(text, textAt(entry, "operation")...), compactFields(entry)...), '\n')
		}
	}
	key := syncKey{digest: want.Digest, apply: want.Policy.Apply, owned: sha256.Sum256(text)}
	if cap(text) <= largestOwnedText {
		*buffer = text
	}
	ownedTexts.Put(buffer)
	return key, true
}

// ownedTexts are buffers for syncKeyOf, of which each may grow to largestOwnedText bytes: a hash would copy each text.
var ownedTexts = sync.Pool{New: func() any { return new([]byte) }}

const largestOwnedText = 64 << 10

// inSync are the keys that were found without drift. They depend on nothing else, so a key is right for
// any object: without them, each reconcile at rest would parse the managedFields of all objects.
var inSync = lru.New(rememberedInSync)

// rememberedInSync bounds inSync; a key takes a quarter of a kilobyte.
const rememberedInSync = 10_000
