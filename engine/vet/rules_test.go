package vet

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// TestEachRuleIsInTheFileOfItsNameAndFindsItsExample shows that a rule can be found by its name, and
// that the table is true.
func TestEachRuleIsInTheFileOfItsNameAndFindsItsExample(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(faultRules, warningRules, questionRules) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(r.name + ".go")
			function := regexp.MustCompile(`(?mi)^func ` + strings.ReplaceAll(r.name, "_", "") + `\(v \*view\) fault\.Faults`)
			if err != nil || !function.Match(text) {
				t.Errorf("there is no %s.go with the function of the rule: %v", r.name, err)
			}
			archive, err := txtar.ParseFile(filepath.Join("testdata", r.example+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			if found := r.find(Examine(load(t, archive), nil).view()); len(found) == 0 {
				t.Errorf("the rule finds nothing in %s", r.example)
			}
		})
	}
}

// load loads the package of an archive.
func load(t *testing.T, archive *txtar.Archive) *program.Program {
	t.Helper()
	module := &txtar.Archive{}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "module/"); ok {
			module.Files = append(module.Files, txtar.File{Name: name, Data: f.Data})
		}
	}
	files, err := txtar.FS(module)
	if err != nil {
		t.Fatal(err)
	}
	s, err := source.Loader{}.Module("shop", "", "shop", files)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
