package check_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// largePackage is a package that renders a ConfigMap, with more of something.
func largePackage(tb testing.TB, spec, data, more string) *program.Program {
	tb.Helper()
	return packageOf(tb, fmt.Sprintf(`package shop

import "operetta.dev/schemas/operator"

operator.#Controller
group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _

#Spec: {%s}

components: config: objects: configmap: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: {kind: "shop"%s}
}
%s`, spec, data, more))
}

// packageOf compiles the text of a package.
func packageOf(tb testing.TB, text string) *program.Program {
	tb.Helper()
	s, err := source.Loader{}.Module("shop", "", "shop", fstest.MapFS{"shop/shop.cue": {Data: []byte(text)}})
	if err != nil {
		tb.Fatal(err)
	}
	p, err := program.Load(s)
	if err == nil {
		p, err = p.WithCheapEnumerations()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// repeated returns a text for each number.
func repeated(n int, format, separator string) string {
	var out []string
	for i := range n {
		out = append(out, strings.ReplaceAll(format, "#", fmt.Sprintf("%04d", i)))
	}
	return strings.Join(out, separator)
}

// TestWhatIsThereAThousandTimesIsTriedInParts: the parts are said, and what is wrong with one of them is found with a
// resource that has nothing else.
func TestWhatIsThereAThousandTimesIsTriedInParts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason           string
		spec, data, more string
		bound            int
		parts            []check.Truncation
		// shown is the spec that shows a fault, as text, or "" if there is none.
		shown string
		// cases is how many are tried.
		cases int
	}{
		"values": {
			reason: "those that the package names are among those that are tried",
			spec:   "mode: " + repeated(1000, `"v#"`, " | "), data: ", mode: cr.spec.mode",
			more:  `if cr.spec.mode == "v0777" {components: config: objects: configmap: data: mode: "other"}`,
			parts: []check.Truncation{{Path: "spec.mode", Unit: "values", Tried: 32, Of: 1000}},
			shown: "map[mode:v0777]", cases: 32,
		},
		"the last value": {
			reason: "it is a boundary",
			spec:   "mode: " + repeated(1000, `"v#"`, " | "), data: ", mode: cr.spec.mode",
			more:  `if cr.spec.mode =~ "999" {components: config: objects: configmap: data: mode: "other"}`,
			parts: []check.Truncation{{Path: "spec.mode", Unit: "values", Tried: 32, Of: 1000}},
			shown: "map[mode:v0999]", cases: 32,
		},
		"as many values as cases": {
			reason: "nothing is left out, and there is nothing to say",
			spec:   "mode: " + repeated(210, `"v#"`, " | "), data: ", mode: cr.spec.mode",
			more:  `if cr.spec.mode =~ "133" {components: config: objects: configmap: data: mode: "other"}`,
			bound: 210,
			shown: "map[mode:v0133]", cases: 210,
		},
		"fields": {
			reason: "the resource that shows a fault has the one that matters, without a try for each other one",
			spec:   repeated(1000, "f#?: bool", "\n"), data: "",
			more:  "if cr.spec.f0777 != _|_ {components: config: objects: configmap: data: kind: \"\\(cr.spec.f0777)\"}",
			parts: []check.Truncation{{Path: "pairs", Unit: "branches", Tried: 120, Of: 1000}},
			shown: "map[f0777:false]", cases: 64,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tried := 0
			got, err := check.Run(t.Context(), largePackage(t, row.spec, row.data, row.more), check.Options{
				Bound: row.bound, Progress: func(_, all int) { tried = all },
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.parts, got.Parts); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			shown := ""
			for _, f := range got.Counterexamples {
				shown += fmt.Sprint(f.Resource["spec"])
			}
			if shown != row.shown || tried != row.cases {
				t.Errorf("%s: %d cases, shown by %s\n%v", row.reason, tried, shown, got)
			}
		})
	}
}

// TestHundredsOfInputsAreTried: each is there and not there in some case, and the defaults are looked at in parts.
func TestHundredsOfInputsAreTried(t *testing.T) {
	t.Parallel()
	inputs := repeated(70, "i#: {apiVersion: \"v1\", kind: \"ConfigMap\", name: \"in-#\"}", "\n")
	data := ", " + repeated(70, `k#: *inputs.i#.object.data.a | "none"`, ", ")
	evaluations := 0
	got, err := check.Run(t.Context(), largePackage(t, "", data, "inputs: {"+inputs+"}"), check.Options{
		Bound: 8, Enough: func() bool { evaluations++; return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []check.Truncation{
		{Path: "pairs", Unit: "branches", Tried: 120, Of: 140},
		{Path: "inputs", Unit: "fields with a default", Tried: 60, Of: 70},
	}
	if diff := cmp.Diff(want, got.Parts); diff != "" || len(got.Counterexamples) > 0 || got.Ready != got.Cases {
		t.Errorf("got %v and %v\n%s", got, got.Counterexamples, diff)
	}
	if got.Chosen != got.Choices {
		t.Errorf("%d of %d choices are in a case", got.Chosen, got.Choices)
	}
	if evaluations > 1000 {
		t.Errorf("it asked %d times whether it should go on", evaluations)
	}
}
