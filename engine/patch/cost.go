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
	patch, object := shapeOf(c.StrategicMerge), shapeOf(manifest)
	items := patch.items + len(c.Operations)
	for _, o := range c.Operations {
		change = append(change, o.Value...)
	}
	return len(text) + len(change) + itemCost*(items+object.items) + comparisonCost*items*max(patch.longest, object.longest)
}

// shape is how large a value is: the total number of items in its lists, the length of its longest
// list, and its nesting depth.
type shape struct{ items, longest, depth int }

func shapeOf(v any) shape {
	var out shape
	add := func(inner any) {
		s := shapeOf(inner)
		out = shape{out.items + s.items, max(out.longest, s.longest), max(out.depth, s.depth)}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			add(inner)
		}
	case []any:
		for _, inner := range v {
			add(inner)
		}
		out.items, out.longest = out.items+len(v), max(out.longest, len(v))
	default:
		return shape{}
	}
	out.depth++
	return out
}
