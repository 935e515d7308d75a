package crd_test

import (
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

	"operetta.dev/engine/crd"
)

// TestAnElseIsAFault: a rule for the first branch alone would leave the other one to nobody.
func TestAnElseIsAFault(t *testing.T) {
	t.Parallel()
	input := cuecontext.New().CompileString(`@experiment(try)
#Spec: {
	on: bool | *false
	s?: string
	t?: string
	if on {s!: _} else {t!: _}
}
`, cue.Filename("rules.cue"))
	_, err := crd.Generate(definitionOf(input))
	if err == nil || !strings.Contains(err.Error(), `whether these fields exist depends on "on"`) {
		t.Errorf("got %v", err)
	}
}

// TestHiddenFieldsAreRulesOrListed: what CUE refuses by a field that users do not see is a rule, or is listed for the webhook;
// a field that is only allowed refuses nothing.
func TestHiddenFieldsAreRulesOrListed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, schema string
		by             crd.Enforcement
		text           string
	}{
		"Optional":   {"it need not be there", "_ok?: true & (a < 3)", "", ""},
		"Required":   {"nobody can fill it in", "_ok!: true & (a < 3)", crd.ByCUE, "_ok!: true & (a < 3)"},
		"Twice":      {"two declarations are a conjunction", "_ok: true\n_ok: a < 3", crd.ByCUE, "_ok: a < 3"},
		"Definition": {"CUE looks at definitions as well", "#ok: true & (a < 3)", crd.ByCEL, "self.a < 3"},
		"Helper":     {"others are made of it", "_low: a < 3", "", ""},
		"Presence":   {"the message is in words", "b?: int\n_ok: true & (a < 3 || b == _|_)", crd.ByCEL, "(a < 3 || b is not set) must be true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := cuecontext.New().CompileString("#Spec: {\na: int | *1\n"+tc.schema+"\n}\n", cue.Filename("rules.cue"))
			def := definitionOf(input)
			generated, rules, err := crd.GenerateWithRules(def)
			if err != nil {
				t.Fatal(err)
			}
			var found []crd.Constraint
			for _, c := range crd.Constraints(def, generated, rules) {
				if c.By != crd.ByOpenAPI {
					found = append(found, c)
				}
			}
			switch {
			case tc.by == "" && len(found) > 0:
				t.Errorf("%s: got %+v, want none", tc.reason, found)
			case tc.by != "" && (len(found) != 1 || found[0].By != tc.by || !strings.Contains(found[0].Text, tc.text)):
				t.Errorf("%s: got %+v, want %s: %s", tc.reason, found, tc.by, tc.text)
			}
		})
	}
}
