package architecture

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// platform ends the name of a file of which there is another one for all other systems.
var platform = regexp.MustCompile(`_(linux|unix|other)((_test)?\.go)$`)

// Nothing here is built for another system, so a function that is renamed for Linux alone would
// be missed only by whoever has one.
func TestFilesOfOtherSystemsDeclareTheSame(t *testing.T) {
	declared := map[string]map[string][]string{}
	for _, f := range source(t) {
		m := platform.FindStringSubmatch(f.name)
		if m == nil {
			continue
		}
		pair := platform.ReplaceAllString(f.name, "$2")
		if declared[pair] == nil {
			declared[pair] = map[string][]string{}
		}
		names := []string{}
		for _, d := range f.syntax.Decls {
			if function, ok := d.(*ast.FuncDecl); ok {
				names = append(names, function.Name.Name)
			}
		}
		slices.Sort(names)
		declared[pair][m[1]] = names
	}
	if len(declared) == 0 {
		t.Fatal("there are no such files")
	}
	for pair, of := range declared {
		if len(of) != 2 || of["other"] == nil {
			t.Errorf("%s: there must be one for Linux or Unix, and one for all others: %v", pair, of)
			continue
		}
		for system, names := range of {
			if diff := cmp.Diff(of["other"], names); diff != "" {
				t.Errorf("%s: functions of all others and of %s (-want +got):\n%s", pair, system, diff)
			}
		}
	}
}
