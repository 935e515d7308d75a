package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/ownership"
)

// withheldValue stands for a value that the API server quotes.
const withheldValue = "(withheld, it may come from a Secret)"

// withhold returns what the API server says about a field of an object without the value of the field, if parts of the object
// may come from a Secret: encoded, cut or joined with others, no redactor would find the content in it. A policy may still
// quote whatever it likes.
func withhold(d ownership.Desired, path, problem string) string {
	if d.Key == "" { // nothing in it comes from a Secret
		return problem
	}
	value, found := any(d.Manifest.Object), path != ""
	for _, part := range fieldpath.Parse(path) {
		if value, found = part.Lookup(value); !found {
			return problem // a field that is not there has no value
		}
	}
	if whole, err := json.Marshal(value); found && err == nil {
		problem = strings.ReplaceAll(problem, string(whole), withheldValue)
	}
	leaves := leavesOf(value)
	slices.SortFunc(leaves, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }) // one may be in another
	for _, leaf := range leaves {
		quoted := strconv.Quote(leaf)
		for _, form := range []string{quoted, quoted[1 : len(quoted)-1], leaf} {
			problem = strings.ReplaceAll(problem, form, withheldValue)
		}
	}
	return problem
}

// shortestWithheld is how long a value is at least that is withheld: a shorter one is part of other words.
const shortestWithheld = 4

// leavesOf returns the texts in a value, and its keys.
func leavesOf(value any) []string {
	var out []string
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			out = append(append(out, leavesOf(key)...), leavesOf(below)...)
		}
	case []any:
		for _, below := range v {
			out = append(out, leavesOf(below)...)
		}
	default:
		if text := fmt.Sprint(v); len(text) >= shortestWithheld {
			out = append(out, text)
		}
	}
	return out
}
