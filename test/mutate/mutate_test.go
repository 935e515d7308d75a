package main

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

// onlyTime imports a package time that has no more than a Duration.
type onlyTime struct{}

// Import implements types.Importer.
func (onlyTime) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, "time")
	name := types.NewTypeName(token.NoPos, pkg, "Duration", nil)
	types.NewNamed(name, types.Typ[types.Int64], nil)
	pkg.Scope().Insert(name)
	pkg.MarkComplete()
	return pkg, nil
}

// findIn returns the mutants of a source file.
func findIn(t *testing.T, source string) *file {
	t.Helper()
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: onlyTime{}}
	pkg, err := config.Check("p", set, []*ast.File{syntax}, info)
	if err != nil {
		t.Fatal(err)
	}
	lastID := 0
	return find("p", "p.go", []byte(source), &packages.Package{Fset: set, Types: pkg, TypesInfo: info}, syntax, &lastID)
}

func TestMutantsOfASnippet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, body string
		want         []string
	}{
		"comparison":      {"the neighbour of the operator is the usual slip", "_ = a < 2", []string{"<= for < in a < 2", "3 for 2"}},
		"and":             {"conditions are joined wrongly", "_ = x && y", []string{"|| for && in x && y"}},
		"negation":        {"it is lost", "_ = !x", []string{"without the ! of !x"}},
		"condition":       {"it is turned round once", "if x { f() }", []string{"if not x", "without f()"}},
		"operator":        {"the operator has a mutant already", "if !x { f() }", []string{"without the ! of !x", "without f()"}},
		"boolean":         {"it is the other one", "_ = true", []string{"false for true"}},
		"early return":    {"it is forgotten", "if x { return }", []string{"if not x", "without return"}},
		"loop":            {"it goes on too long", "for { break }", []string{"without break"}},
		"switch":          {"each case has statements", "switch { case x: f() }", []string{"without f()"}},
		"select":          {"so has each communication", "select { case <-ch: f() }", []string{"without f()"}},
		"panic":           {"the function may end there", "panic(a)", nil},
		"blank":           {"it does nothing", "_ = f", nil},
		"deferred call":   {"what it releases stays", "defer f()", []string{"without defer f()"}},
		"definition":      {"without it nothing would compile", "z := a; g(z)", []string{"without g(z)"}},
		"constant":        {"it is a text, or would not compile", "const k = 3", nil},
		"returned result": {"without it nothing would compile", "_ = func() int { return a - a }", []string{"+ for - in a - a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := "package p\n\nfunc body() { " + c.body + " }\n\nvar (a int; x, y bool; f func(); g func(int); ch chan int)\n"
			found := findIn(t, source)
			var got []string
			for _, m := range found.mutants {
				if m.line != 3 {
					t.Errorf("%s is not in line 3", m)
				}
				got = append(got, m.change)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if mutated := string(found.mutate("m", nil)); strings.Count(mutated, "\n") != strings.Count(source, "\n") {
				t.Errorf("the lines of the source are others:\n%s", mutated)
			}
		})
	}
}

func TestEachMutantIsASwitchInTheSource(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"var v = a == 2":                         "var v = ((a == mutant__.OneMore[int](2, 2)) != mutant__.On(1))",
		"var v = a < 2":                          "var v = mutant__.Less(1, a , mutant__.OneMore[int](2, 2))",
		"var v = x && y":                         "var v = ((((x) != mutant__.On(1)) && ((y) != mutant__.On(1))) != mutant__.On(1))",
		"var v = !x":                             "var v = ((!x) != mutant__.On(1))",
		"var v = true":                           "var v = ((true) != mutant__.On(1))",
		"var v int64 = 7":                        "var v int64 = mutant__.OneMore[int64](1, 7)",
		`import "time"; var v time.Duration = 0`: `import "time"; var v time.Duration = mutant__.Longer(1, 0)`,
		"func f() { g(); return }":               "func f() { if !mutant__.On(1) { g() }; if !mutant__.On(2) { return } }",
		"const c = 7":                            "const c = 7",
	} {
		rest := "\n\nvar (a int; x, y bool; g func())\n"
		got := string(findIn(t, "package p\n\n"+source+rest).mutate("m", nil))
		begin := "package p; import mutant__ \"m\"\n\n"
		if want == source {
			begin = "package p\n\n"
		}
		if diff := cmp.Diff(begin+want+rest, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}

func TestWhatIsLeftOutIsTheSource(t *testing.T) {
	t.Parallel()
	source := "package p\n\nvar v = w <= 10\n\nvar w int\n"
	f := findIn(t, source)
	got := string(f.mutate("m", map[int]bool{1: true}))
	want := "package p; import mutant__ \"m\"\n\nvar v = w <= mutant__.OneMore[int](2, 10)\n\nvar w int\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("one of two (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(source, string(f.mutate("m", map[int]bool{1: true, 2: true}))); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
}

// It changes the working directory, as the go command needs a module.
func TestVerdictsOnAPackageWithOneTest(t *testing.T) {
	runtime, err := os.ReadFile(filepath.Join("mutant", "mutant.go"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	p := target{name: "p", tests: []string{"./engine/p"}}
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		filepath.Join(runtimePackage, "mutant.go"): string(runtime),
		"engine/p/p.go": `package p

func Small(n int) bool { return n < 10 && n >= 0 }

func Large(n int) bool {
	var limits [3]int
	limits[1] = 100
	return n > limits[1]
}

func Forever(n int) bool {
	for n < 10 {
		n++
	}
	return true
}
`,
		"engine/p/p_test.go": `package p

import "testing"

func TestSmall(t *testing.T) {
	if Small(10) || !Small(9) || !Small(0) || Small(-1) {
		t.Error("10 is the limit")
	}
}

func TestLarge(t *testing.T) {
	if Large(50) || !Large(200) {
		t.Error("100 is the limit")
	}
}
`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := build(t.Context(), t.TempDir(), []target{p})
	if err != nil {
		t.Fatal(err)
	}
	reached, err := b.measure(t.Context(), []target{p})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]verdict{}
	for _, m := range b.mutants {
		v, by, err := b.try(t.Context(), m, reached.batches(m, p.tests))
		if err != nil || (v == killed) != strings.Contains(by, "./engine/p") {
			t.Errorf("%s: %s %q, %v", m, v, by, err)
		}
		got[m.change] = v
	}
	want := map[string]verdict{
		"<= for < in n < 10": killed, "> for >= in n >= 0": killed, "|| for && in n < 10 && n >= 0": killed, "11 for 10": killed, "1 for 0": killed,
		"without limits[1] = 100": killed, "101 for 100": survived, "2 for 1": killed, ">= for > in n > limits[1]": survived,
		"without n++": unreached, "false for true": unreached,
	}
	// Three mutants have the same words.
	for _, m := range []string{"<= for < in n < 10", "11 for 10"} {
		delete(got, m)
		delete(want, m)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := &score{tried: map[string]int{}, killed: map[string]int{}}
	if err := b.testMutants(t.Context(), []target{p}, b.mutants[:2], reached, 2, s); err != nil || s.done != 2 || s.killed["p"] != 2 {
		t.Errorf("%d mutants are tested, %d killed, error %v", s.done, s.killed["p"], err)
	}
}

// An interrupt leaves most mutants without a verdict: their tests do not even begin.
func TestAnInterruptedRunKeepsItsVerdicts(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	b := &binaries{dir: t.TempDir(), root: t.TempDir()}
	p := target{name: "p", tests: []string{"."}}
	reached := reach{2: {{pkg: ".", name: "TestSmall"}}, 3: {{pkg: ".", name: "TestSmall"}}}
	s := &score{tried: map[string]int{}, killed: map[string]int{}}
	err := b.testMutants(ctx, []target{p}, []mutant{{id: 1, target: "p"}, {id: 2, target: "p"}, {id: 3, target: "p"}}, reached, 1, s)
	if !errors.Is(err, context.Canceled) || s.done != 1 || len(s.survived) != 1 {
		t.Errorf("%d mutants are tested, %d survived, error %v; want only the one that no test reaches", s.done, len(s.survived), err)
	}
}

func TestWhatDoesNotCompileIsLeftOut(t *testing.T) {
	t.Parallel()
	f := &file{name: "engine/p/p.go", mutants: []mutant{{id: 1, line: 3}, {id: 2, line: 4}, {id: 3, line: 4}}}
	other := &file{name: "engine/q/p.go", mutants: []mutant{{id: 4, line: 4}}}
	leftOut := map[int]bool{}
	if !leaveOut([]problem{{"p/p.go", 4}}, []*file{f, other}, leftOut) {
		t.Error("nothing is left out")
	}
	if diff := cmp.Diff(map[int]bool{2: true, 3: true}, leftOut); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if leaveOut([]problem{{"p/p.go", 4}, {"p/p.go", 9}}, []*file{f, other}, leftOut) {
		t.Error("something more is left out")
	}
}

func TestTheQuickTestsOfAllPackagesRunFirst(t *testing.T) {
	t.Parallel()
	mk := func(pkg string, seconds ...float64) []test {
		var out []test
		for _, s := range seconds {
			out = append(out, test{pkg, pkg + strconv.FormatFloat(s, 'f', -1, 64), time.Duration(s * float64(time.Second))})
		}
		return out
	}
	r := reach{1: append(mk("a", 1, 3, 30), mk("b", 0.5, 0.7)...)}
	var got []string
	for _, c := range r.batches(mutant{id: 1}, []string{"a", "b", "c"}) {
		got = append(got, c.pkg+" "+c.pattern()+" "+c.timeout().String())
	}
	want := []string{"b ^(b0\\.5|b0\\.7)$ 1m0s", "a ^(a1)$ 1m0s", "a ^(a3|a30)$ 2m45s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAScoreNeedsItsPercentage(t *testing.T) {
	t.Parallel()
	s := &score{want: 2, tried: map[string]int{}, killed: map[string]int{}}
	m := mutant{target: targets[0].name}
	for _, v := range []verdict{killed, unreached} {
		s.add(m, v, "")
	}
	if s.done != 2 || len(s.survived) != 1 {
		t.Errorf("%d of 2 are done, %d survived", s.done, len(s.survived))
	}
	for percent, want := range map[int]error{50: nil, 51: errTooFew} {
		if got := s.print(0, percent); !errors.Is(got, want) {
			t.Errorf("with %d %%: %v", percent, got)
		}
	}
}
