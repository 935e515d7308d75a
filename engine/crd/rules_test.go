package crd_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
)

// ruledSchemas are schemas over some of the fields a, b (numbers), s, t (texts), on, off (booleans) and l (a list) whose
// constraints over several fields become rules, as many as ruled says.
var ruledSchemas = map[string]struct {
	schema string
	ruled  int
}{
	"a bound":                       {"a: int, b: int & >=a", 1},
	"a bound by a default":          {"a: int | *2, b!: int & >a", 1},
	"two bounds":                    {"a: int | *1, b?: int & >=a, n?: b: int & <a", 2},
	"a default beside a bound":      {"a: int | *1, b: (int | *3) & >=a", 1},
	"a limit and its default":       {"a: int | *1, b: (int & >=0 & <=2 | *2) & >=a", 1},
	"a bound by what may be absent": {"a?: int, b?: int & <=a", 1},
	"another text":                  {"s: string, t?: string & !=s", 1},
	"another number":                {"a?: int, b?: int & !=a", 1},
	"an inner struct":               {"n: {a: int | *1, b: int | *2}, b?: int & >n.b", 1},
	"a bound of an inner field":     {"a: int | *1, n?: {b: int & >=a}", 1},
	"required under a condition":    {`s: "x" | "y" | *"z", t?: string, if s == "x" {t!: _}`, 1},
	"the condition is the default":  {`s: *"x" | "y", t?: string, if s == "x" {t!: string}`, 1},
	"no default of the condition":   {`s!: "x" | "y", t?: string, if s == "x" {t!: _}`, 1},
	"a boolean":                     {"on: bool | *false, t?: string, a?: int, if on {t!: _, a!: _}", 2},
	"an optional boolean":           {"on?: bool, t?: string, if on {t!: _}", 1},
	"not a boolean":                 {"on: bool | *false, t?: string, if !on {t!: _}", 1},
	"present and more":              {"a?: int, t?: string, if a != _|_ if a > 1 {t!: _}", 1},
	"present in one condition":      {"a?: int, t?: string, if a != _|_ && a > 1 {t!: _}", 1},
	"absent":                        {"a?: int, t?: string, if a == _|_ {t!: _}", 1},
	"either":                        {"on: bool | *false, off: bool | *true, t?: string, if on || !off {t!: _}", 1},
	"a bound under a condition":     {"on: bool | *false, a: int | *1, if on {a: >=2}", 1},
	"the same by default":           {"on: bool | *true, a: int | *1, if on {a: >=2}", 1},
	"a bound of an optional field":  {"on: bool | *false, a?: int, if on {a?: >=2 & <=5}", 1},
	"required and bounded":          {"on: bool | *true, a?: int, if on {a!: >=2}", 1},
	"compared fields":               {"a: int | *1, b: int | *1, t?: string, if a < b {t!: _}", 1},
	"a hidden check":                {"a: int | *1, b: int | *3, _ok: true & (a <= b)", 1},
	"a check of optional fields":    {"a?: int, b?: int, _ok: (a <= b) & true", 1},
	"a number of elements":          {"a?: int, l?: [...string], _ok: true & (len(l) <= a)", 1},
	"exactly one":                   {"{a?: int, t?: string} & matchN(1, [{a!: _}, {t!: _}])", 1},
	"at least one":                  {"{a?: int, b?: int, t?: string} & matchN(>=1, [{a!: _, b!: _}, {t!: _}])", 1},
	"one or none":                   {"u?: {a?: int, t?: string} & matchN(<=1, [{a!: _}, {t!: _}])", 1},
	"in a list":                     {"m?: [...{a: int, b: int & >=a}]", 1},
	"in a definition":               {"m?: #Range, n?: #Range", 2},
	"words of CEL":                  {`in?: int, "self-x"?: int, "a.b"?: int, _ok: true & (in > 1), b?: int & >=in`, 2},
	"quotes in a text":              {`s: string | *"", t?: string, if s == "a\"\\\n\u00e4" {t!: _}`, 1},
}

// valuesOf are what is tried for each field; nil leaves it out.
var valuesOf = map[string][]string{
	"a": {"", "0", "1", "2", "3", "-1"}, "b": {"", "0", "1", "2", "3", "5"}, "s": {"", `"x"`, `"y"`, `"z"`, `"a\"\\\nä"`}, "t": {"", `"x"`, `""`},
	"on": {"", "true", "false"}, "off": {"", "true", "false"}, "l": {"", "[]", `["x"]`, `["x", "y"]`},
	"n": {"", "{}", "{a: 1}", "{b: 0}", "{b: 2}", "{b: 9}", `{t: "x"}`, `{a: 1, t: "x"}`, "{a: 3, b: 1}"}, "m": {"", "[]", "[{a: 1, b: 1}]", "[{a: 1, b: 2}, {a: 2, b: 1}]", "{a: 1, b: 0}", "{a: 1, b: 2}"},
	"u":  {"", "{}", "{a: 1}", `{t: "x"}`, `{a: 1, t: "x"}`},
	"in": {"", "0", "2"},
}

// TestRulesOfCUESayWhatCUESays holds CUE and the code of the API server against each other for every combination of values.
func TestRulesOfCUESayWhatCUESays(t *testing.T) {
	t.Parallel()
	for name, tc := range ruledSchemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := cuecontext.New().CompileString("#Range: {a: int, b: int & >=a}\n#Spec: {\n"+strings.ReplaceAll(tc.schema, ", ", "\n")+"\n}\n", cue.Filename("rules.cue"))
			if strings.Contains(tc.schema, "matchN") {
				input = cuecontext.New().CompileString("#Spec: {\n"+tc.schema+"\n}\n", cue.Filename("rules.cue"))
			}
			if input.Err() != nil {
				t.Fatal(input.Err())
			}
			generated, err := crd.Generate(definitionOf(input))
			if err != nil {
				t.Fatal(err)
			}
			if err := conform.Check(generated); err != nil {
				t.Fatal(err)
			}
			server, err := conform.NewServer(generated, "v1")
			if err != nil {
				t.Fatal(err)
			}
			spec := generated.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			if got := rulesIn(&spec); got != tc.ruled {
				t.Errorf("there are %d rules, want %d", got, tc.ruled)
			}
			schema := input.LookupPath(cue.ParsePath("#Spec"))
			tried, refused := 0, 0
			for _, text := range combined(spec.Properties) {
				object := resource(t, []byte(text), "spec")
				stored, serverErr := server.Admit(object, nil)
				_, cueErr := evaluate(schema, object["spec"])
				if tried++; cueErr != nil {
					refused++
				}
				if (serverErr == nil) != (cueErr == nil) {
					t.Errorf("%s: CUE: %v; the API server: %v", text, cueErr, serverErr)
				}
				if serverErr != nil {
					continue
				}
				if _, err := evaluate(schema, stored["spec"]); err != nil {
					t.Errorf("%s: CUE refuses what is stored: %v", text, err)
				}
			}
			if refused == 0 || refused == tried {
				t.Errorf("%d of %d are refused, which shows nothing", refused, tried)
			}
		})
	}
}

// rulesIn counts the rules of a schema and below.
func rulesIn(s *apiextensionsv1.JSONSchemaProps) int {
	n := len(s.XValidations)
	for _, p := range s.Properties {
		n += rulesIn(&p)
	}
	if s.Items != nil {
		n += rulesIn(s.Items.Schema)
	}
	return n
}

// combined returns a spec for each combination of values of some fields.
func combined(fields map[string]apiextensionsv1.JSONSchemaProps) []string {
	out := []string{""}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		values := valuesOf[name]
		if values == nil {
			values = []string{"", "0", "3"}
		}
		var next []string
		for _, before := range out {
			for _, v := range values {
				if v == "" {
					next = append(next, before)
					continue
				}
				next = append(next, before+fmt.Sprintf("%q: %s, ", name, v))
			}
		}
		out = next
	}
	for i, fields := range out {
		out[i] = "{" + fields + "}"
	}
	return out
}
