package syntax_test

import (
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/parser"
	"github.com/google/go-cmp/cmp"
)

func TestWhatDecidesAboutTheFormIsKnownFromTheText(t *testing.T) {
	t.Parallel()
	rows := []struct{ reason, text, want string }{
		{"a condition is known", `components: a: {if cr.spec.x > 1 {b: cr.spec.y}}`, ""},
		{"a condition by another name is known", "_m: cr.spec.x\ncomponents: a: {if _m > 1 {b: 1}}", ""},
		{"a condition by a name with two declarations", "_m: cr.spec.x\n_m: *1 | int\ncomponents: a: {if _m > 1 {b: 1}}", "cr.spec.x"},
		{"a condition on an element by its index", `components: a: {if cr.spec.x[0] > 1 {b: 1}}`, "cr.spec.x"},
		{"whether there is something is part of the form", `components: a: {if cr.spec.x != _|_ {b: cr.spec.x}}`, ""},
		{"and so is how much", `components: a: {if len(cr.spec.x) > 1 {b: cr.spec.x}}`, ""},
		{"an index is a value", `components: a: b: ["x", "y"][cr.spec.x]`, ""},
		{"an element of a loop", `components: a: {for v in cr.spec.l if v.x > 1 {b: v.y}}`, "cr.spec.l.*.x"},
		{"a comparison with bottom of more than a reference", `components: a: b: (cr.spec.x & <5) != _|_`, "cr.spec.x"},
		{"what the package declares itself may have a default", "live: a: b: *1 | int\ncomponents: a: {if live.a.b != _|_ {b: 1}}", "live.a.b"},
	}
	for _, row := range rows {
		f, err := parser.ParseFile("a.cue", "package a\n"+row.text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range indexOf(f).Deciding() {
			got = append(got, strings.Join(r.Path, "."))
		}
		slices.Sort(got)
		if diff := cmp.Diff(row.want, strings.Join(slices.Compact(got), " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, diff)
		}
	}
}
