package fault_test

import (
	"fmt"
	"slices"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/fault"
)

const definitions = `
#D: {a?: {b?: {...}, x?: int}, k?: string, n!: string}
#Names: [=~"^[a-z]+$"]: int
#List: l: [...{a: int}]
live: {z: 1, zero: 0, m: a: 1, ...}
`

// The codes of what CUE says, in v0.17.1 and v0.18.0-alpha.1 alike.
func TestTheCodeOfAFaultIsWhatTheValueIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, path, want string }{
		"a conflict":                          {`x: 1 & 2`, "x", "Invalid"},
		"a bound":                             {`x: 5 & <3`, "x", "Invalid"},
		"a type":                              {`x: "a" & int`, "x", "Invalid"},
		"no alternative":                      {`x: "c" & ("a" | "b")`, "x", "Invalid"},
		"an operator":                         {`x: 3 >= "3"`, "x", "Invalid"},
		"an error of the author's":            {`x: error("no")`, "x", "Invalid"},
		"a division by zero":                  {`x: 1/live.zero`, "x", "Invalid"},
		"an integer division by zero":         {`x: div(1, live.zero)`, "x", "Invalid"},
		"an index into a struct":              {`x: live.m[0]`, "x", "Invalid"},
		"an index beyond a list":              {`x: [1][1]`, "x", "Invalid"},
		"a selection from a number":           {`x: live.z.y`, "x", "Invalid"},
		"an unknown field that is a conflict": {`x: #D & {n: "n", q: 1 & 2}`, "x.q", "Invalid"},
		"a conflict beside an embedding":      {`x: {#D, n: "n", q: 5 & <3}`, "x.q", "Invalid"},
		"what is not there yet":               {`x: live.a.b`, "x", "Incomplete"},
		"a text of what is not there yet":     {`x: "a \(live.a)"`, "x", "Incomplete"},
		"an optional field":                   {`y: {k?: int}, x: y.k`, "x", "Incomplete"},
		"a type without a value":              {`x: string`, "x", "Incomplete"},
		"an undecided condition":              {`x: {a: 1, if live.q {b: 1}}`, "x", "Incomplete"},
		"a required field":                    {`x: #D`, "x.n", "Unset"},
		"a required field of what is unified": {`x: #D & {k: "k"}`, "x.n", "Unset"},
		"a required field that waits":         {`x: #D & {n: live.n}`, "x.n", "Incomplete"},
		"a field of a closed struct":          {`x: close({a: 1}) & {b: 2}`, "x.b", "UnknownField"},
		"a field of a definition":             {`x: #D & {n: "n", q: 1}`, "x.q", "UnknownField"},
		"a field deep in a definition":        {`x: y: z: #D & {n: "n", a: q: r: 1}`, "x.y.z.a.q", "UnknownField"},
		"a field that refers":                 {`y: 1, x: #D & {n: "n", q: y}`, "x.q", "UnknownField"},
		"a name that matches no pattern":      {`x: #Names & {A: 1}`, "x.A", "UnknownField"},
		"a field of an element":               {`x: #List & {l: [{a: 1}, {a: 1, b: 2}]}`, "x.l[1].b", "UnknownField"},
		"a field of a definition in a list":   {`x: [#D & {n: "n", q: 1}]`, "x[0].q", "UnknownField"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := cuecontext.New().CompileString(definitions+c.text, cue.Filename("x.cue"))
			x := v.LookupPath(cue.ParsePath("x"))
			faults := fault.FromCUE(x.Validate(cue.Concrete(true)), x)
			at := slices.IndexFunc(faults, func(f fault.Fault) bool { return f.Path == c.path })
			if at < 0 {
				t.Fatalf("there is no fault at %s: %v", c.path, faults)
			}
			if got := faults[at].Code.String(); got != c.want {
				t.Errorf("%v is %s, want %s", faults[at], got, c.want)
			}
			for _, f := range fault.FromCUE(v.Validate(cue.Concrete(true)), v) {
				if f.Path == c.path && f.Code != faults[at].Code {
					t.Errorf("%v is %v of the whole package, %v of the field", f, f.Code, faults[at].Code)
				}
			}
		})
	}
}

func TestFaultsAreSortedAndEachIsSaidOnce(t *testing.T) {
	t.Parallel()
	at := func(line, column int, message string) fault.Fault {
		return fault.Fault{Position: fault.Position{File: "x.cue", Line: line}, Message: message, Origin: fault.TokenPosition{File: "x.cue", Line: line, Column: column}}
	}
	got := fault.Faults{at(2, 1, "b"), at(1, 9, "a"), at(1, 3, "a")}.Sorted().Error()
	if diff := cmp.Diff("x.cue:1: a\nx.cue:2: b", got); diff != "" {
		t.Error(diff)
	}
}

// A person reads the line that Error returns: two faults with the same line are one, whatever
// code the engine gave them.
func TestFaultsThatReadAlikeAreOne(t *testing.T) {
	t.Parallel()
	one := fault.Fault{Position: fault.Position{File: "x.cue", Line: 1}, Path: "a", Message: "m", Hint: "h"}
	with := func(change func(*fault.Fault)) fault.Fault {
		f := one
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		other fault.Fault
		want  int
	}{
		"another code":     {with(func(f *fault.Fault) { f.Code = fault.UnknownField }), 1},
		"another name":     {with(func(f *fault.Fault) { f.Name = "n" }), 1},
		"another hint":     {with(func(f *fault.Fault) { f.Hint = "i" }), 2},
		"another use":      {with(func(f *fault.Fault) { f.Position.Use = "y.cue:2" }), 2},
		"another path":     {with(func(f *fault.Fault) { f.Path = "b" }), 2},
		"another position": {with(func(f *fault.Fault) { f.Position.Line = 2 }), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ordered := fault.Faults{one, c.other, one}.Sorted()
			if len(ordered) != c.want {
				t.Errorf("%d faults, want %d:\n%v", len(ordered), c.want, ordered)
			}
			if diff := cmp.Diff(ordered, fault.Faults{c.other, one, c.other}.Sorted()); diff != "" {
				t.Errorf("the order depends on the order of the input (-first +second):\n%s", diff)
			}
		})
	}
}

func TestAnErrorOfTheParserIsInvalid(t *testing.T) {
	t.Parallel()
	err := cuecontext.New().CompileString("x: {", cue.Filename("x.cue")).Err()
	for _, f := range fault.FromCUE(err, cue.Value{}) {
		if f.Code != fault.Invalid || f.Position.String() != "x.cue:1" {
			t.Errorf("%v %v", f.Code, f)
		}
	}
	if got := fmt.Sprint(fault.FromCUE(nil, cue.Value{})); got != "" {
		t.Errorf("no error is %q", got)
	}
}

// TestAnUnsetFieldNamesItsType: a field that may be anything has none to name.
func TestAnUnsetFieldNamesItsType(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, source, want string }{
		"Typed":    {"the author sees what to write", "a: string", "required, but not set (must be string)"},
		"Anything": {"_ is no word of its users", "a: _", "required, but not set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := cuecontext.New().CompileString(tc.source)
			got := fault.FromCUE(v.Validate(cue.Concrete(true)), v)
			if len(got) != 1 || got[0].Message != tc.want {
				t.Errorf("%s: got %v, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestADefaultThatDoesNotMatchIsNoise has values of fields with a default: that the value is not the default is no fault.
func TestADefaultThatDoesNotMatchIsNoise(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, source string
		want           []string
	}{
		"a number beyond its bound": {
			"the bound is the rule", `x: (int & <=9 | *1) & 12`,
			[]string{"x: invalid value 12 (out of bound <=9)"},
		},
		"an element beside an empty list": {
			"an empty list is the default, and not what the list has to be", `x: ([...=~"^[a-z]+$"] | *[]) & ["a", "K2"]`,
			[]string{`x[1]: invalid value "K2" (out of bound =~"^[a-z]+$")`},
		},
		"a list that is too long": {
			"the validator is the rule", `import "list"
x: ([...string] & list.MaxItems(1) | *[]) & ["a", "b"]`,
			[]string{`x: invalid value ["a","b"] (does not satisfy list.MaxItems(1)): len(list) > MaxItems(1) (2 > 1)`},
		},
		"a list that is no list": {
			"both alternatives are lists", `x: ([...string] | *[]) & "a"`,
			[]string{`x: invalid value "a" (must be [...string] or [])`},
		},
		"an entry of a map": {
			"the default has no such entry, and the map may have it", `#S: m: {[string]: int & <5} | *{x: 1}
x: #S & {m: z: 7}`,
			[]string{"x.m.z: invalid value 7 (out of bound <5)"},
		},
		"an entry that the default has": {
			"the bound is the rule", `#S: m: {[string]: int & <5} | *{x: 1}
x: #S & {m: x: 7}`,
			[]string{"x.m.x: invalid value 7 (out of bound <5)"},
		},
		"an entry of another type": {
			"CUE says at the map what the type is, and at the entry what the default is", `#S: m: {[string]: string} | *{a: "x"}
x: #S & {m: a: 1}`,
			[]string{"x.m.a: invalid value 1 (must be string)"},
		},
		"an entry of another type, with the default first": {
			"the order of the alternatives is the author's", `#S: m: *{a: "x"} | {[string]: string}
x: #S & {m: {b: "y", a: 1}}`,
			[]string{"x.m.a: invalid value 1 (must be string)"},
		},
		"an entry of another type beside an empty map": {
			"that the default has no such entry says nothing", `#S: m: {[string]: string} | *{}
x: #S & {m: a: 1}`,
			[]string{"x.m.a: invalid value 1 (must be string)"},
		},
		"several entries of another type": {
			"CUE names one of them; that the default has none of them says nothing", `#S: m: {[string]: string} | *{}
x: #S & {m: {a: 1, b: 2, c: "z"}}`,
			[]string{"x.m.a: invalid value 1 (must be string)"},
		},
		"a misspelled field": {
			"no alternative has it", `#S: m: {a: int | *1} | *{a: 1}
x: #S & {m: b: 7}`,
			[]string{"x.m.b: unknown field"},
		},
		"a value of neither alternative": {
			"both alternatives name what the field may be", `#S: m: {kind: "a"} | {kind: "b"}
x: #S & {m: kind: "c"}`,
			[]string{`x.m.kind: invalid value "c" (must be "a" or "b")`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := cuecontext.New().CompileString(tc.source).LookupPath(cue.ParsePath("x"))
			var got []string
			for _, f := range fault.FromCUE(v.Validate(cue.Concrete(true)), v) {
				got = append(got, f.Path+": "+f.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
