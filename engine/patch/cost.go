package patch

import "encoding/json"

// maxCost bounds the cost of all changes of a resource in one evaluation; a rollout has several
// evaluations. 256 changes of an object of 8 KiB cost a quarter of it. A unit is about a tenth
// of a microsecond, as measured.
const maxCost = 8 << 20

// The cost of reading an item of a list, in addition to its text, and of comparing two items.
const (
	itemCost       = 50
	comparisonCost = 4
)

// maxDepth bounds the nesting that a patch may produce, because each recorded field is stored
// with its path.
const maxDepth = 128

// cost returns the cost of a change of an object: the object is read several times, and a merge
// searches for each item of a list in another list.
func (c Change) cost(manifest map[string]any) int {
	text, _ := json.Marshal(manifest) // no error: it was decoded from JSON
	change, _ := json.Marshal(c.StrategicMerge)
	items, longest := countItems(c.StrategicMerge)
	items += len(c.Operations)
	for _, o := range c.Operations {
		change = append(change, o.Value...)
	}
	has, other := countItems(manifest)
	return len(text) + len(change) + itemCost*(items+has) + comparisonCost*items*max(longest, other)
}

// countItems returns the total number of items in the lists of a value, and the length of the
// longest list.
func countItems(v any) (total, longest int) {
	each := func(inner any) {
		n, long := countItems(inner)
		total, longest = total+n, max(longest, long)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			each(inner)
		}
	case []any:
		for _, inner := range v {
			each(inner)
		}
		total, longest = total+len(v), max(longest, len(v))
	}
	return total, longest
}

// depthOf returns the nesting depth of a value.
func depthOf(v any) int {
	deep := 0
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			deep = max(deep, depthOf(inner))
		}
	case []any:
		for _, inner := range v {
			deep = max(deep, depthOf(inner))
		}
	default:
		return 0
	}
	return deep + 1
}
