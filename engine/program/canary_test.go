package program_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// canaries are what this package takes for granted of CUE, or works around. A row
// that fails after an update of CUE says which piece of it to look at again.
var canaries = map[string]struct {
	reason string
	text   string
	holds  func(v cue.Value) bool
}{
	"a field missing from an open struct in a closed one is incomplete": {
		"the contract's live is {...}: what is not there yet is unknown, and not broken",
		`#C: {live: {...}, x?: _}, #C, live: {a: 1}, x: live.b.c`,
		func(v cue.Value) bool { return at(v, "x").Validate() == nil && at(v, "x").Err() != nil },
	},
	"a field missing from _ in a closed struct is an error": {
		"why the contract's live is not _",
		`#C: {live: _, x?: _}, #C, live: {a: 1}, x: live.b.c`,
		func(v cue.Value) bool { return at(v, "x").Validate() != nil },
	},
	"an embedded definition does not close what is written beside it": {
		"why Load looks for unknown fields itself",
		`#C: {a: {b?: int}}, #C, a: c: 1`,
		func(v cue.Value) bool { return v.Validate() == nil },
	},
	"a unification with the definition does": {
		"how Load finds those that come from a reference",
		`#C: {a: {b?: int}}, x: {#C, a: c: 1}, y: #C & x`,
		func(v cue.Value) bool { return at(v, "y").Validate() != nil },
	},
	"an undecided comprehension makes its struct incomplete, and shows the rest": {
		"how the engine knows that there may be more components",
		`live: {...}, c: {a: 1, if live.x {b: 2}}`,
		func(v cue.Value) bool {
			return cue.IsIncomplete(at(v, "c").Err()) && v.Err() == nil && at(v, "c.a").Exists()
		},
	},
	"an undecided comprehension beside a faulty field is not reported": {
		"why everything that may be undecided is held then",
		`n: "x", live: {...}, c: {a: len(n) & 2, if live.x {b: 2}}`,
		func(v cue.Value) bool {
			err := at(v, "c").Validate(cue.Concrete(true))
			return err != nil && len(cueerrors.Errors(err)) == 1
		},
	},
	"the fields of a struct that is in error can be listed with the hidden ones": {
		"how the other components are found then",
		`c: {a: 1, if 1/0 > 1 {b: 2}}`,
		func(v cue.Value) bool {
			_, plain := at(v, "c").Fields()
			it, err := at(v, "c").Fields(cue.Hidden(true))
			return plain != nil && err == nil && it.Next() && it.Selector().String() == "a"
		},
	},
	"the smallest integer of 64 bits is too small for Int64": {
		"why integers are read through math/big",
		`x: -9223372036854775808`,
		func(v cue.Value) bool { _, err := at(v, "x").Int64(); return err != nil },
	},
	"== compares values of different types": {
		"why package vet looks at the types",
		`x: "3" == 3`,
		func(v cue.Value) bool { b, err := at(v, "x").Bool(); return err == nil && !b },
	},
	"nil in Go data is no value": {
		"null in a custom resource reads as if it were not there",
		`x: int | *3`,
		func(v cue.Value) bool {
			n, err := at(v.FillPath(cue.Path{}, map[string]any{"x": nil}), "x").Int64()
			return err == nil && n == 3
		},
	},
	"fields of Go maps are in the order of their names": {
		"the same session gives the same bytes",
		`m: {...}, l: [for k, _ in m {k}]`,
		func(v cue.Value) bool {
			v = v.FillPath(cue.Path{}, map[string]any{"m": map[string]any{"c": 1, "a": 1, "b": 1}})
			b, err := at(v, "l").MarshalJSON()
			return err == nil && string(b) == `["a","b","c"]`
		},
	},
}

func at(v cue.Value, path string) cue.Value { return v.LookupPath(cue.ParsePath(path)) }

func TestCUEIsWhatIsReliedUpon(t *testing.T) {
	t.Parallel()
	for name, c := range canaries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := cuecontext.New().CompileString(c.text)
			if !c.holds(v) {
				t.Errorf("no longer so: %s\n%#v\n%v", c.reason, v, v.Validate())
			}
		})
	}
}

// The builder of this package replaces cue/load. Once this fails, it need not.
func TestCUELoadCannotImportVendoredPackagesFromAnFS(t *testing.T) {
	t.Parallel()
	inst := load.Instances([]string{"."}, &load.Config{Dir: "/", FS: fstest.MapFS{
		"cue.mod/module.cue":            {Data: []byte("module: \"a.example@v0\"\nlanguage: version: \"v0.17.0\"\n")},
		"a.cue":                         {Data: []byte("package a\n\nimport \"b.example/b\"\n\nx: b.x\n")},
		"cue.mod/pkg/b.example/b/b.cue": {Data: []byte("package b\n\nx: 1\n")},
	}})[0]
	if inst.Err == nil {
		t.Error("cue issue 4439 is fixed: let cue/load read packages again")
	}
}

func TestAPanicOfTheEvaluatorIsAnError(t *testing.T) {
	t.Parallel()
	// A program that was never loaded panics at once.
	_, err := new(program.Program).Evaluate(program.Session{})
	var panicked *program.PanicError
	if !errors.As(err, &panicked) {
		t.Fatalf("got %v", err)
	}
	if _, err := program.Load(new(source.Snapshot)); err == nil {
		t.Error("a snapshot of nothing was loaded")
	}
	if len(panicked.Stack) == 0 || panicked.Cause == nil {
		t.Errorf("the panic says nothing: %+v", panicked)
	}
}

// An evaluation may not become much dearer without anybody noticing. The figure is
// of one with eight objects; most of it is CUE's.
func TestAnEvaluationStaysWithinItsBudget(t *testing.T) {
	p := compile(t, large)
	s := largeSession(t)
	evaluate(t, p, s)
	const budget = 11_000
	if allocs := testing.AllocsPerRun(10, func() { evaluate(t, p, s) }); allocs > budget {
		t.Errorf("%v allocations, the budget is %d", allocs, budget)
	}
}
