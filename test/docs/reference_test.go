package docs

import (
	"regexp"
	"strings"
	"testing"
)

// mark is the name of a label, an annotation or a finalizer of the product.
var mark = regexp.MustCompile("`operetta\\.dev/[a-z-]+`")

func TestEveryMarkIsInTheReference(t *testing.T) {
	var coded []string
	for _, folder := range []string{"reconcile", "ownership", "program", "rollout", "controller", "crd"} {
		for _, f := range goFiles(t, folder) {
			for _, text := range literals(f) {
				// The schemas are CUE packages.
				if m := mark.FindString("`" + text + "`"); m != "" && m != "`operetta.dev/schemas`" {
					coded = append(coded, m)
				}
			}
		}
	}
	if len(coded) == 0 {
		t.Error("none was found in the code")
	}
	text := read(t, "docs/reference.md").Text
	for _, m := range coded {
		if !strings.Contains(text, m) {
			t.Errorf("docs/reference.md does not explain %s", m)
		}
	}
	for _, m := range mark.FindAllString(text, -1) {
		known := strings.Join(coded, " ")
		// The finalizer is put together from two constants.
		if !strings.Contains(known, m) && m != "`operetta.dev/teardown`" {
			t.Errorf("docs/reference.md explains %s, which does not exist", m)
		}
	}
}
