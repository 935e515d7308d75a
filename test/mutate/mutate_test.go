package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMutantsOfASnippet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, body string
		want         []string
	}{
		"comparison":      {"the neighbour of the operator is the usual slip", "_ = a < 2", []string{"without _ = a < 2", "<= for < in a < 2", "3 for 2"}},
		"and":             {"conditions are joined wrongly", "_ = x && y", []string{"without _ = x && y", "|| for && in x && y"}},
		"negation":        {"it is lost", "_ = !x", []string{"without _ = !x", "without the ! of !x"}},
		"condition":       {"it is turned round once", "if x { f() }", []string{"if not x", "without f()"}},
		"operator":        {"the operator has a mutant already", "if !x { f() }", []string{"without the ! of !x", "without f()"}},
		"boolean":         {"it is the other one", "_ = true", []string{"without _ = true", "false for true"}},
		"early return":    {"it is forgotten", "if x { return }", []string{"if not x", "without return"}},
		"loop":            {"it goes on too long", "for { break }", []string{"without break"}},
		"switch":          {"each case has statements", "switch { case x: f() }", []string{"without f()"}},
		"select":          {"so has each communication", "select { case <-ch: f() }", []string{"without f()"}},
		"deferred call":   {"what it releases stays", "defer f()", []string{"without defer f()"}},
		"definition":      {"without it nothing would compile", "z := a; g(z)", []string{"without g(z)"}},
		"constant":        {"it is a text, or would not compile", "const k = 3", nil},
		"returned result": {"without it nothing would compile", "_ = func() int { return a - a }", []string{"without _ = func() int { return a - a }", "+ for - in a - a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := "package p\n\nfunc body() { " + c.body + " }\n"
			mutants, err := findInFile(target{}, "p.go", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range mutants {
				if m.line != 3 || string(m.apply([]byte(source))) == source {
					t.Errorf("%s does not change line 3", m)
				}
				got = append(got, m.change)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestAMutantIsTheSourceWithItsText(t *testing.T) {
	t.Parallel()
	source := "package p\n\nvar small = size <= 10\n"
	mutants, err := findInFile(target{}, "p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range mutants {
		got[m.change] = string(m.apply([]byte(source)))
	}
	want := map[string]string{
		"< for <= in size <= 10": "package p\n\nvar small = size < 10\n",
		"11 for 10":              "package p\n\nvar small = size <= 11\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// It changes the working directory, as the go command needs a module.
func TestVerdictsOnAPackageWithOneTest(t *testing.T) {
	t.Chdir(t.TempDir())
	p := target{name: "p", tests: []string{"./engine/p"}}
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.24\n",
		"engine/p/p.go": `package p

func Small(n int) bool { return n < 10 }

func Large(n int) bool {
	limit := 0
	limit = 100
	return n > limit
}

func Name() string { name := ""; if true { name = "p" }; return name }
`,
		"engine/p/p_test.go": `package p

import "testing"

func TestSmall(t *testing.T) {
	if Small(10) || !Small(9) {
		t.Error("10 is the limit")
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
	mutants, err := find(p)
	if err != nil {
		t.Fatal(err)
	}
	mutants = append(mutants, mutant{target: p, file: mutants[0].file, text: "x", change: "no package clause"})
	want := map[string]verdict{"<= for < in n < 10": killed, ">= for > in n > limit": survived, "no package clause": invalid}
	mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return want[m.change] == "" })
	got := map[string]verdict{}
	for _, m := range mutants {
		v, by, err := try(t.Context(), m)
		if err != nil || (v == killed) != strings.Contains(by, "./engine/p") {
			t.Errorf("%s: %s %q, %v", m, v, by, err)
		}
		got[m.change] = v
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := newScore(len(mutants))
	if err := testMutants(t.Context(), mutants, 2, s); err != nil || s.done != 2 || len(s.survived) != 1 {
		t.Errorf("%d mutants are tested, %v survived, error %v", s.done, s.survived, err)
	}
	mutants[0].file = "missing.go"
	if err := testMutants(t.Context(), mutants, 2, newScore(len(mutants))); err == nil {
		t.Error("a mutant that cannot be tested is no error")
	}
	if err := testUnchanged(t.Context(), []target{p}); err != nil {
		t.Error(err)
	}
}

func TestAScoreNeedsItsPercentage(t *testing.T) {
	t.Parallel()
	s := newScore(2)
	m := mutant{target: targets[0]}
	for _, v := range []verdict{killed, invalid, survived, killed} {
		s.add(m, v, "")
	}
	if !s.full() || s.done != 2 || len(s.survived) != 1 {
		t.Errorf("%d of 2 are done, %d survived", s.done, len(s.survived))
	}
	for percent, want := range map[int]error{50: nil, 51: errTooFew} {
		if got := s.print(0, percent); !errors.Is(got, want) {
			t.Errorf("with %d %%: %v", percent, got)
		}
	}
}
