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
	"optional between two fields":   {"a: int, p: int, b?: int & >=a & <=p", 2},
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
	"a hidden field declared twice": {"a: int | *1, b: int | *3, _ok: true & (a <= b), _ok: bool", 1},
	"not set, or set":               {"a?: int, b?: int, _ok: true & (a == _|_ || b != _|_)", 1},
	"a field beside one with a dot": {`n: {"a.c": int | *1, a: {c: int | *2}}, b?: int & >n.a.c`, 1},
	"told apart by a text":          {`{s: "x", a: int} | {s: "y", t: string}`, 5},
	"told apart and required":       {`{s!: "x", a!: int} | {s!: "y", t?: string}`, 3},
	"optional in one of them":       {`{s: "x", a?: int} | {s: "y", t: string}`, 4},
	"optional in both of them":      {`{s: "x", a?: int} | {s: "y", t?: string}`, 3},
	"nothing else in one of them":   {`{s: "x"} | {s: "y", t: string}`, 3},
	"one has all of the other":      {`{s: "x", a: int} | {s: "y", a: int, t: string}`, 3},
	"the same fields":               {`{s: "x", a: int} | {s: "y", a: int}`, 1},
	"a field of all of them":        {`{s: "x", a: int, b: int | *1} | {s: "y", b: int | *1, t: string}`, 5},
	"three of them":                 {`{s: "x", a: int} | {s: "y", t: string} | {s: "z", a?: int, b: int}`, 7},
	"quotes tell apart":             {`{s: "a\"\\\n\u00e4", a: int} | {s: "y", t: string}`, 5},
	"fields beside":                 {`on: bool | *false, {s: "x", a: int} | {s: "y", t: string}`, 5},
	"told apart below":              {`c: {s: "x", a: int} | {s: "y", t?: string}, a?: int`, 4},
	"told apart and optional below": {`c?: #X | #Y`, 4},
	"bounds in one of them":         {`{s!: "x", a: int & >=1} | {s!: "y", t: =~"^x"}`, 4},
	"told apart in a list":          {`k?: [...(#X | #Y)]`, 4},
	"in a struct of one of them":    {`{s: "x", n: {a: int}} | {s: "y", t: string}`, 5},
	"a name with a dot":             {`n: {"a.c": int | *1, a: {c: int | *2}}, b?: int & >n."a.c"`, 1},
	"quotes in a text":              {`s: string | *"", t?: string, if s == "a\"\\\n\u00e4" {t!: _}`, 1},
}

// valuesOf are what is tried for each field; nil leaves it out.
var valuesOf = map[string][]string{
	"a": {"", "0", "1", "2", "3", "-1"}, "b": {"", "0", "1", "2", "3", "5"}, "s": {"", `"x"`, `"y"`, `"z"`, `"a\"\\\nä"`}, "t": {"", `"x"`, `""`},
	"on": {"", "true", "false"}, "off": {"", "true", "false"}, "l": {"", "[]", `["x"]`, `["x", "y"]`},
	"n": {"", "{}", "{a: 1}", "{b: 0}", "{b: 2}", "{b: 9}", `{t: "x"}`, `{a: 1, t: "x"}`, "{a: 3, b: 1}"}, "m": {"", "[]", "[{a: 1, b: 1}]", "[{a: 1, b: 2}, {a: 2, b: 1}]", "{a: 1, b: 0}", "{a: 1, b: 2}"},
	"u":  {"", "{}", "{a: 1}", `{t: "x"}`, `{a: 1, t: "x"}`},
	"in": {"", "0", "2"},
	"c":  {"", "{}", "{a: 1}", `{t: "x"}`, `{a: 1, t: "x"}`, `{s: "x"}`, `{s: "y"}`, `{s: "z"}`, `{s: "x", a: 1}`, `{s: "y", a: 1}`, `{s: "y", t: "x"}`, `{s: "x", t: "x"}`},
	"k":  {"", "[]", "[{}]", "[{a: 1}]", `[{s: "x", a: 1}, {s: "y"}]`, `[{s: "y", a: 1}]`, `[{s: "x"}]`, `[{t: "x"}]`},
}

// TestRulesOfCUESayWhatCUESays holds CUE and the code of the API server against each other for every combination of values.
func TestRulesOfCUESayWhatCUESays(t *testing.T) {
	t.Parallel()
	for name, tc := range ruledSchemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := cuecontext.New().CompileString("#Range: {a: int, b: int & >=a}\n#X: {s: \"x\", a!: int}\n#Y: {s: \"y\", t?: string}\n#Spec: {\n"+strings.ReplaceAll(tc.schema, ", ", "\n")+"\n}\n", cue.Filename("rules.cue"))
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
			t.Logf("%d specs, %d are refused", tried, refused)
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

// TestWhatNoRuleSaysExactlyStaysAFault: CUE has another verdict, or another value, than an API server with a rule would have.
func TestWhatNoRuleSaysExactlyStaysAFault(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, schema, fault string }{
		"OneValueIsLeft":     {"CUE fills in the only number within both bounds", "a: int\nb: int & <=5 & >=a", "spec.b: the value is bounded by a"},
		"TwoSides":           {"CUE fills in the only number between two fields", "a: int\nc: int\nb: int & >=a & <=c", "spec.b: the value is bounded by"},
		"TwoConditions":      {"both may hold, and leave one number", "on: bool | *false\noff: bool | *false\na: int | *1\nif on {a: >=2}\nif off {a: <=2}", `whether these fields exist depends on "on"`},
		"OptionalUntilThen":  {"the condition makes it regular", "on: bool | *false\na?: int\nb: int\nif on {a: >=2}\nif !on {a: <=b}", `whether these fields exist depends on "on"`},
		"BoundAndCondition":  {"a field from above, and a condition from below", "on: bool | *false\nb: int\na: (int | *1) & <=b\nif on {a: >=2}", "spec.a: the value is bounded by b"},
		"AnotherDefault":     {"the default is not the only number that is left", "a: int | *1\nb: (int & >=0 | *2) & <=a", "spec.b: the value is bounded by a"},
		"ADefaultBeside":     {"the default is an alternative to the bound", "a: int | *1\nb: int & >=a | *0", "spec.b: the value is bounded by a"},
		"Numbers":            {"CEL compares floats, and CUE exactly", "a: number\nb: number & >=a", "spec.b: the value is bounded by a"},
		"Through":            {"what is behind a name is more than a field", "a: int | *1\nlet L = a + 1\nb: int & >=L", "spec.b: the value is bounded by a"},
		"Nullable":           {"null is no number", "a: null | int\nb: int & >=a", "spec.b: the value is bounded by a"},
		"OutsideOfAList":     {"no rule of an element sees what is around the list", "a: int | *1\nm?: [...{b: int & >=a}]", "m.[_].b: the value is computed from a"},
		"OnlyThere":          {"a field that exists under a condition alone", "on: bool | *false\nif on {t!: string}", `whether these fields exist depends on "on"`},
		"AValue":             {"CUE fills it in", "on: bool | *false\nt?: string\nif on {t: \"x\"}", `whether these fields exist depends on "on"`},
		"AnotherType":        {"more than that it exists", "on: bool | *false\nt?: string\nif on {t!: =~\"^a\"}", `whether these fields exist depends on "on"`},
		"Calls":              {"a condition that is computed", "s?: string\nt?: string\nif len(s) > 2 {t!: _}", `whether these fields exist depends on "s"`},
		"Bytes":              {"a text is not bytes", "s?: bytes\nt?: string\nif s == \"x\" {t!: _}", `whether these fields exist depends on "s"`},
		"BytesInTheText":     {"no text equals bytes", "s?: string\nt?: string\nif s != 'x' {t!: _}", `whether these fields exist depends on "s"`},
		"CountsOfStructs":    {"matchN looks at values", "u?: {a?: int, t?: string} & matchN(1, [{a!: >2}, {t!: _}])", "a CRD cannot express matchN"},
		"Hundreds":           {"the rules would have the square of them", strings.Repeat("{s: \"N\", a: int} | ", 400) + "{s: \"y\", t: string}", "a choice between structs"},
		"ADefaultOfOne":      {"the API server would fill it in for the other one, too", "{s: \"x\", a: int | *1} | {s: \"y\", t: string}", "a choice between structs"},
		"TwoTypes":           {"a field has one type", "{s: \"x\", a: int} | {s: \"y\", a: string}", "a choice between structs"},
		"TwoBounds":          {"a field has one schema", "{s: \"x\", a: int & >1} | {s: \"y\", a: int & >2}", "a choice between structs"},
		"NothingTells":       {"CUE takes what is left, and no field says which", "{a: int} | {t: string}", "a choice between structs"},
		"TheSameTells":       {"one text is in two of them", "{s: \"x\", a: int} | {s: \"x\", t: string}", "a choice between structs"},
		"NumbersTell":        {"only texts tell", "{a: 1, b: int} | {a: 2, t: string}", "a choice between structs"},
		"ADefaultTells":      {"it is filled in", "{s: *\"x\" | \"z\", a: int} | {s: \"y\", t: string}", "a choice between structs"},
		"APreferredOpenOne":  {"CUE takes it where both are possible", "c?: *{s: \"x\", a: int} | {s: \"y\", a: int, t?: string}", "a choice between structs"},
		"ARuleOfOne":         {"it would be one of the choice", "c?: {@crd(rule=\"self.a > 5\"), s: \"x\", a: int} | {s: \"y\", t?: string}", "a choice between structs"},
		"AnImmutableOne":     {"the other one may change", "_X: {s: \"x\", a?: int} @crd(immutable)\nc?: _X | {s: \"y\", t?: string}", "a choice between structs"},
		"ANullInOne":         {"a rule cannot tell a null from nothing", "c?: {s: \"x\", a: null | int} | {s: \"y\", t: string}", "a choice between structs"},
		"RegularBesideThem":  {"it is not required then", "c?: {s: string} & ({s!: \"x\", a: int} | {s!: \"y\", t: string})", "a choice between structs"},
		"ALongRule":          {"the API server refuses it", "c?: " + strings.TrimSuffix(strings.Repeat("{s: \"N\", aLongNameOfAFieldN?: int, anotherLongNameN?: int, theThirdLongNameN?: int} | ", 16), " | "), "a choice between structs"},
		"APreferredOne":      {"the API server fills in no struct", "c: *{s: \"x\", a: 1} | {s: \"y\", t: string}", "a choice between structs"},
		"TwoChoices":         {"of four structs", "c: ({s: \"x\", a: int} | {s: \"y\", t: string}) & ({s: \"x\", b?: int} | {s: \"z\"})", "a choice between structs"},
		"OpenOnes":           {"an open struct takes the fields of the other one", "c: {s: \"x\", a: int, ...} | {s: \"y\", t: string}", "a choice between structs"},
		"AConditionInOne":    {"it may need what is not there", "c: {s: \"x\", a?: int, b?: int, if a != _|_ {b!: _}} | {s: \"y\", t: string}", "a choice between structs"},
		"OneUnderACondition": {"CUE fills in the only number within both bounds", "on: bool | *false\na: int & <=2\nif on {a: >=2}", `whether these fields exist depends on "on"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range strings.Count(tc.schema, `"N"`) {
				tc.schema = strings.Replace(tc.schema, `"N"`, fmt.Sprintf(`"n%d"`, i), 1)
				tc.schema = strings.Replace(strings.Replace(strings.Replace(tc.schema, "FieldN?", fmt.Sprintf("Field%d?", i), 1), "otherLongNameN?", fmt.Sprintf("otherLongName%d?", i), 1), "ThirdLongNameN?", fmt.Sprintf("ThirdLongName%d?", i), 1)
			}
			input := cuecontext.New().CompileString("#Spec: {\n"+tc.schema+"\n}\n", cue.Filename("rules.cue"))
			_, err := crd.Generate(definitionOf(input))
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%s: got %v, want a fault with %s", tc.reason, err, tc.fault)
			}
		})
	}
}

func TestARuleThatCostsTooMuchIsLeftOutAndReported(t *testing.T) {
	t.Parallel()
	input := cuecontext.New().CompileString(`
#Spec: {
	a: int | *1
	b: (int | *2) & >=a
	m?: [...{k?: [...{s: string, t?: string & !=s}]}]
}
`, cue.Filename("rules.cue"))
	def := definitionOf(input)
	generated, rules, err := crd.GenerateWithRules(def)
	if err != nil || len(rules.Translated) != 2 {
		t.Fatalf("got %+v and %v", rules, err)
	}
	if conform.Check(generated) == nil {
		t.Fatal("the rule does not cost too much, which shows nothing")
	}
	rules, err = crd.RemoveCostlyRules(def, generated, rules, conform.Errors)
	if err != nil {
		t.Fatal(err)
	}
	if err := conform.Check(generated); err != nil {
		t.Errorf("the API server still refuses it: %v", err)
	}
	by := map[string]crd.Constraint{}
	for _, c := range crd.Constraints(def, generated, rules) {
		by[c.Path+" "+string(c.By)] = c
	}
	if c := by["versions.v1.spec.m.[_].k.[_] webhook"]; c.Why == "" || c.Place != "rules.cue:5" {
		t.Errorf("the rule that costs too much is reported as %+v", c)
	}
	if c := by["versions.v1.spec CEL"]; !strings.Contains(c.Text, "self.b >= self.a") {
		t.Errorf("the other rule is reported as %+v", c)
	}
}

// TestTheStatusHasNoRules: what cannot be evaluated yet is left out of a status, which a rule would refuse.
func TestTheStatusHasNoRules(t *testing.T) {
	t.Parallel()
	input := cuecontext.New().CompileString("#Spec: {}\n#Status: {a: int | *1, b: int & >=a}\n", cue.Filename("rules.cue"))
	generated, err := crd.Generate(definitionOf(input))
	if err != nil {
		t.Fatal(err)
	}
	if status := generated.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]; rulesIn(&status) > 0 {
		t.Errorf("the status has rules: %+v", status)
	}
}
