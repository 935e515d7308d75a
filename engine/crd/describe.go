package crd

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// descriptionOf returns the doc comments of a field or, if it has none, those of the
// definitions that it refers to.
func descriptionOf(v cue.Value) string {
	for to, referred := range operands(v, nil) {
		if to == v || referred {
			if own := docComments(to, nil); own != nil {
				return strings.Join(own, "\n\n")
			}
		}
	}
	return ""
}

// specDescription returns the doc comment of #Spec, or else that of the field spec. The latter
// counts only if it is in the file of the struct: schemas/operator has a comment on the field
// that explains what a spec is.
func specDescription(v cue.Value) string {
	files := map[string]bool{}
	for _, l := range structLiterals(v) {
		files[l.Pos().Filename()] = true
	}
	var found []string
	for to, referred := range operands(v, nil) {
		if referred {
			found = append(found, docComments(to, nil)...)
		}
	}
	if found == nil {
		found = docComments(v, files)
	}
	return strings.Join(found, "\n\n")
}

// docComments returns each doc comment once: a field that is declared in several places often
// has the same comment in all of them. If files is not nil, comments of other files are left out.
func docComments(v cue.Value, files map[string]bool) []string {
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
