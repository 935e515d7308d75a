package crd

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// describe returns the doc comments of a field, or if it has none, those of the
// definitions that it refers to.
func describe(v cue.Value) string {
	own := docs(v, nil)
	if own == nil {
		spread(v, func(to cue.Value, referred bool) {
			if own == nil && referred {
				own = docs(to, nil)
			}
		})
	}
	return strings.Join(own, "\n\n")
}

// describeSpec prefers the comment of #Spec. One at the field spec itself counts only
// if it is where the struct is: schemas/operator has one that says what a spec is.
func describeSpec(v cue.Value) string {
	files := map[string]bool{}
	for _, l := range literals(v) {
		files[l.Pos().Filename()] = true
	}
	var found []string
	spread(v, func(to cue.Value, referred bool) {
		if referred {
			found = append(found, docs(to, nil)...)
		}
	})
	if found == nil {
		found = docs(v, files)
	}
	return strings.Join(found, "\n\n")
}

// docs returns each doc comment once: a field that is declared in several places often
// has the same comment in all of them. If files is not nil, only their comments count.
func docs(v cue.Value, files map[string]bool) []string {
	var all []string
	for _, group := range v.Doc() {
		text := strings.TrimSpace(group.Text())
		if files != nil && !files[group.Pos().Filename()] {
			continue
		}
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}
