package patch

import "encoding/json"

// mostEffort is what all changes of a resource may cost in one evaluation, of which a
// rollout has several: 256 changes of an object of 8 KiB are a quarter of it. A unit is about a
// tenth of a microsecond, as measured.
const mostEffort = 8 << 20

// What it costs to read an item of a list, beside its text, and to compare two.
const (
	perItem = 50
	perPair = 4
)

// deepest is how deep a patch may nest: what is noted of a field has the path to it.
const deepest = 128

// effort returns what it costs to make a change of an object: the object is read some
// times, and a merge looks for each item of a list among all of another one.
func (c Change) effort(manifest map[string]any) int {
	text, _ := json.Marshal(manifest) // it was read from JSON
	change, _ := json.Marshal(c.StrategicMerge)
	items, longest := itemsOf(c.StrategicMerge)
	items += len(c.Operations)
	for _, o := range c.Operations {
		change = append(change, o.Value...)
	}
	has, other := itemsOf(manifest)
	return len(text) + len(change) + perItem*(items+has) + perPair*items*max(longest, other)
}

// itemsOf returns how many items the lists in a value have in all, and how many the longest
// has.
func itemsOf(v any) (total, longest int) {
	each := func(inner any) {
		n, long := itemsOf(inner)
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

// depthOf returns how deep a value is nested.
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
