package syntax_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program/syntax"
)

// A reading that ends with ... is of all that is below, and one that ends with ? only asks whether there is
// something.
func TestReadingsAreOfNoMoreThanWhatIsSelectedOfElements(t *testing.T) {
	t.Parallel()
	const conditions = "live.web.d.status.conditions"
	for name, row := range map[string]struct {
		text string
		want []string
	}{
		"fields of elements":             {`x: [for c in live.web.d.status.conditions if c.type == "A" {c.status}]`, []string{conditions, conditions + ".*.status...", conditions + ".*.type..."}},
		"also with a default":            {`x: [for c in *live.web.d.status.conditions | [] {*c.type | ""}]`, []string{conditions, conditions + ".*.type..."}},
		"a default that is not empty":    {`x: [for c in *live.web.d.status.conditions | [{type: "A"}] {c.type}]`, []string{conditions + "..."}},
		"no default":                     {`x: [for c in live.web.d.status.conditions | [] {c.type}]`, []string{conditions + "..."}},
		"a whole element":                {`x: [for c in live.web.d.status.conditions if c.type == "A" {c}]`, []string{conditions, conditions + ".*...", conditions + ".*.type..."}},
		"an element that a name has":     {`x: [for c in live.web.d.status.conditions let e = c {e.type}]`, []string{conditions, conditions + ".*..."}},
		"an element by computed name":    {`x: [for c in live.web.d.status.conditions {c[cr.spec.k]}]`, []string{"cr.spec.k...", conditions, conditions + ".*.*..."}},
		"a text with an element":         {`x: [for c in live.web.d.status.conditions {"\(c)"}]`, []string{conditions, conditions + ".*..."}},
		"keys":                           {`x: {for k, v in live.web.d.data {(k): "y"}}`, []string{"live.web.d.data"}},
		"keys and values":                {`x: {for k, v in live.web.d.data {(k): v}}`, []string{"live.web.d.data", "live.web.d.data.*..."}},
		"a loop in a loop":               {`x: [for p in live.web.d.spec.pods for c in p.containers {c.image}]`, []string{"live.web.d.spec.pods", "live.web.d.spec.pods.*.containers", "live.web.d.spec.pods.*.containers.*.image..."}},
		"the name of another loop":       {`x: [for c in live.web.d.status.conditions {c.type}, for c in live.web.d.spec.ports {c}]`, []string{"live.web.d.spec.ports", "live.web.d.spec.ports.*...", conditions, conditions + ".*.type..."}},
		"a field of that name":           {`x: [for c in live.web.d.status.conditions {c: 1, type: c.type}]`, []string{conditions}},
		"a field of another name":        {`x: [for c in live.web.d.status.conditions {type: c.type}]`, []string{conditions, conditions + ".*.type..."}},
		"a loop over another name":       {"_c: live.web.d.status.conditions\nx: [for c in _c {c.type}]", []string{conditions + "..."}},
		"a count":                        {`x: len(live.web.d.status.conditions)`, []string{conditions}},
		"a count of what is selected":    {`x: len([for c in live.web.d.status.conditions if c.type == "A" {c}]) > 0`, []string{conditions, conditions + ".*?", conditions + ".*.type..."}},
		"a list that is no count":        {`x: [for c in live.web.d.status.conditions if c.type == "A" {c}][0]`, []string{conditions, conditions + ".*...", conditions + ".*.type..."}},
		"presence":                       {"live: _\nx: live.web.d.status.conditions != _|_", []string{conditions + "?"}},
		"an element by index":            {`x: live.web.d.status.conditions[0].type`, []string{conditions + ".*.type..."}},
		"an element by a computed index": {`x: live.web.d.status.conditions[cr.spec.i]`, []string{"cr.spec.i...", conditions + ".*..."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, r := range read(t, row.text).Readings() {
				text := strings.Join(r.Path, ".")
				text += map[syntax.Extent]string{syntax.Presence: "?", syntax.Whole: "..."}[r.Extent]
				got = append(got, text)
			}
			slices.Sort(got)
			slices.Sort(row.want)
			if diff := cmp.Diff(row.want, slices.Compact(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
