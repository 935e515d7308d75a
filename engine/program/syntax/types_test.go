package syntax_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program/syntax"
)

// paths returns readings as text: one that ends with ... is of all that is below, and one that ends with ? only asks whether
// there is something.
func paths(readings []syntax.Reading) []string {
	var out []string
	for _, r := range readings {
		out = append(out, strings.Join(r.Path, ".")+map[syntax.Extent]string{syntax.Presence: "?", syntax.Whole: "..."}[r.Extent])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestATypeLooksAtNoMoreThanItsTextShows(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, text string
		want         []string
	}{
		"anything":                   {"it declares nothing", `live: _`, []string{"live?"}},
		"a scalar":                   {"its value has to fit", `live: web: d: n: int & >1 | *"x"`, []string{"live.web.d.n...", "live.web.d?", "live.web?", "live?"}},
		"an open type":               {"nothing in it refers to a field", "live: web: #D\n#D: {n: int, ...}", []string{"live.web.n...", "live.web?", "live?"}},
		"an open type that computes": {"what it refers to may have any field", "live: web: #D\n#D: {s: {...}, n: s.n, ...}", []string{"live.web...", "live?"}},
		"a closed type":              {"the object may have more fields, which do no harm", "live: web: #D\n#D: {n: int, m: n}", []string{"live.web.m...", "live.web.n...", "live.web?", "live?"}},
		"a struct by close":          {"it is as closed as a definition", `live: web: close({n: int, m: n})`, []string{"live.web.m...", "live.web.n...", "live.web?", "live?"}},
		"types of which both hold":   {"one is closed", "live: web: #D & {n: >1, ...}\n#D: {n: int, m: n, o?: _}", []string{"live.web.m...", "live.web.n...", "live.web.o...", "live.web?", "live?"}},
		"a choice of closed types":   {"any of them may hold", "live: web: #D | #E\n#D: a: int\n#E: b: a: 1", []string{"live.web.a...", "live.web.b.a...", "live.web.b?", "live.web?", "live?"}},
		"a choice with an open one":  {"a field that neither names excludes the closed one", "live: web: #D | {s: {...}, b: s.b, ...}\n#D: a: int", []string{"live.web...", "live?"}},
		"elements":                   {"no more than their types", "live: web: [...#E]\n#E: a: int", []string{"live.web.*.a...", "live.web.*?", "live.web?", "live?"}},
		"a pattern":                  {"it may be of any field", "live: [string]: #E\n#E: a: int", []string{"live.*.a...", "live.*?", "live?"}},
		"an unknown name":            {"another file or package may have it", "live: web: d: #D", []string{"live.web.d...", "live.web?", "live?"}},
		"a type by itself":           {"it is not followed for ever", "live: web: #D\n#D: {n?: int, d?: #D}", []string{"live.web.d.d...", "live.web.d.n...", "live.web.d?", "live.web.n...", "live.web?", "live?"}},
		"references between fields":  {"the fields of live have paths, so that references to them are readings", "live: web: d: {s: {...}, n: s.n}", []string{"live.web.d.n...", "live.web.d.s?", "live.web.d?", "live.web?", "live?"}},
		"a name that is no label":    {"a string is not hidden", `live: web: "_d": int`, []string{"live.web._d...", "live.web?", "live?"}},
		"a hidden field":             {"no object has it", `live: web: _d: int`, []string{"live.web?", "live?"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, paths(read(t, row.text).Declarations("live"))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestADefinitionReadsOfAnArgumentWhatItsTextSelects(t *testing.T) {
	t.Parallel()
	const apply = "\nx: (#R & {object: live.web.d}).out"
	for name, row := range map[string]struct {
		reason, text string
		want         []string
	}{
		"a field":                   {"it selects one", `#R: {object: _, out: object.a.b}` + apply, []string{"live.web.d.a.b...", "live.web.d?"}},
		"a field that it declares":  {"its value has to fit", `#R: {object: {a: int, ...}, out: 1}` + apply, []string{"live.web.d.a...", "live.web.d?"}},
		"all":                       {"it is a part of the result", `#R: {object: _, out: object}` + apply, []string{"live.web.d..."}},
		"the argument as result":    {"more may be selected of it", "#R: {object: _, out: 1}\nx: (#R & {object: live.web.d}).object", []string{"live.web.d..."}},
		"no field of the result":    {"it holds the argument", "#R: {object: _, out: 1}\nx: #R & {object: live.web.d}", []string{"live.web.d..."}},
		"an embedded definition":    {"it has the same argument", `#R: {#B, object: _, out: object.a}` + "\n#B: {object: _, b: object.b, ...}" + apply, []string{"live.web.d.a...", "live.web.d.b...", "live.web.d?"}},
		"a name for a list":         {"a loop reads no more than it selects", `#R: {object: _, _l: *object.l | [], out: [for e in _l {e.a}]}` + apply, []string{"live.web.d.l", "live.web.d.l.*.a...", "live.web.d.l?", "live.web.d?"}},
		"an alias":                  {"by it, any field may be read", `#R: {O=object: _, out: O.a}` + apply, []string{"live.web.d..."}},
		"a closed type":             {"other fields are errors", `#R: {object: {a: int}, out: object.a}` + apply, []string{"live.web.d..."}},
		"a pattern":                 {"it holds for the argument as well", `#R: {object: _, [string]: {...}, out: object.a}` + apply, []string{"live.web.d..."}},
		"a condition":               {"what it adds is not looked at", `#R: {object: _, if true {out: object.a}}` + apply, []string{"live.web.d..."}},
		"a definition without text": {"another package has it", apply, []string{"live.web.d..."}},
		"a name in another struct":  {"it is another field", `#R: {object: _, out: {object: b: 1, c: object.b}}` + apply, []string{"live.web.d?"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, paths(read(t, row.text).Readings())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
