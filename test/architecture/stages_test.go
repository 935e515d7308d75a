package architecture

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/machine"
)

// assignment is a variable of test/stages.sh.
var assignment = regexp.MustCompile(`(?m)^(\w+)='([^']*)'`)

// stages returns the words of a variable of test/stages.sh.
func stages(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "test", "stages.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range assignment.FindAllStringSubmatch(string(content), -1) {
		if m[1] == name {
			return strings.Fields(m[2])
		}
	}
	t.Fatalf("test/stages.sh has no %s", name)
	return nil
}

// testedPackages returns the folders of the main module with a test that some file of them, tests
// included, makes one of those that are asked for.
func testedPackages(t *testing.T, wanted func(file) bool) []string {
	t.Helper()
	tested, out := map[string]bool{}, map[string]bool{}
	for _, f := range source(t) {
		if strings.HasPrefix(f.dir, "schemas/internal/") { // a module of its own
			continue
		}
		tested[f.dir] = tested[f.dir] || f.test
		out[f.dir] = out[f.dir] || wanted(f)
	}
	var names []string
	for dir := range out {
		if tested[dir] && out[dir] {
			names = append(names, "./"+dir)
		}
	}
	slices.Sort(names)
	return names
}

// uses reports whether a file imports a package.
func uses(f file, paths ...string) bool {
	return slices.ContainsFunc(f.imports(), func(path string) bool { return slices.Contains(paths, path) })
}

// concurrent reports whether a file starts goroutines, or guards against those of others.
func concurrent(f file) bool {
	found := uses(f, "sync", "sync/atomic", "golang.org/x/sync/errgroup")
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt, *ast.ChanType:
			found = true
		}
		return !found
	})
	return found
}

func TestTheRaceDetectorSeesEveryPackageThatRunsThingsAtOnce(t *testing.T) {
	elsewhere := slices.Concat(stages(t, "cluster"), stages(t, "plane"), stages(t, "install"))
	want := slices.DeleteFunc(testedPackages(t, concurrent), func(dir string) bool {
		return slices.ContainsFunc(elsewhere, func(p string) bool { return below(dir, []string{strings.TrimSuffix(p, "/...")}) })
	})
	if diff := cmp.Diff(want, stages(t, "race")); diff != "" {
		t.Errorf("race in test/stages.sh (-want +got):\n%s", diff)
	}
}

func TestTestsOnAControlPlaneAreAStageOfTheirOwn(t *testing.T) {
	want := testedPackages(t, func(f file) bool {
		return f.test && !below(f.dir, []string{"test/controlplane"}) && uses(f, module+"/test/controlplane", module+"/test/harness")
	})
	got := stages(t, "cluster")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cluster in test/stages.sh (-want +got):\n%s", diff)
	}
}

func TestTestsOnEitherClusterRunTwice(t *testing.T) {
	want := testedPackages(t, func(f file) bool { return f.test && uses(f, module+"/test/clustertest") })
	if diff := cmp.Diff(want, stages(t, "live")); diff != "" {
		t.Errorf("live in test/stages.sh (-want +got):\n%s", diff)
	}
}

// A pattern that no test has any more would leave a stage with nothing to do, and green.
func TestPatternsOfStagesNameTests(t *testing.T) {
	machine.Serial(t)
	for name, dirs := range map[string][]string{"sweeps": {"engine/reconcile"}, "templates": {"engine/evaluate", "test/eval"}, "long": {"engine/registry", "test/e2e", "test/attack", "test/check"}} {
		pattern := strings.Join(stages(t, name), " ")
		head, alternatives, _ := strings.Cut(strings.TrimRight(pattern, ")$"), "(")
		for alternative := range strings.SplitSeq(alternatives, "|") {
			if !slices.ContainsFunc(source(t), func(f file) bool { return declares(f, dirs, regexp.MustCompile(head+alternative)) }) {
				t.Errorf("%s in test/stages.sh: no test is like %s%s", name, head, alternative)
			}
		}
	}
	for variable, dir := range map[string]string{"OPERETTA_TEST_SWEEP": "engine/reconcile", "OPERETTA_TEST_LIVE": "test/clustertest", "OPERETTA_TEST_LONG": "test/harness"} {
		if !slices.ContainsFunc(source(t), func(f file) bool { return f.dir == dir && mentions(f, variable) }) {
			t.Errorf("%s does not know %s, which test/stages.sh sets", dir, variable)
		}
	}
}

// The stage race leaves out what a pattern names, and the stage sweep runs only its own packages: a test with such a name
// in another one would run nowhere.
func TestWhatIsLeftToTheSweepIsInItsPackages(t *testing.T) {
	swept, raced := stages(t, "swept"), stages(t, "race")
	for _, name := range []string{"sweeps", "templates"} {
		pattern := regexp.MustCompile(strings.Join(stages(t, name), " "))
		for _, f := range source(t) {
			dir := "./" + f.dir
			if slices.Contains(raced, dir) && !slices.Contains(swept, dir) && declares(f, []string{f.dir}, pattern) {
				t.Errorf("%s: a test has a name like %s in test/stages.sh, so no stage runs it", f.name, name)
			}
		}
	}
}

// The stage race leaves out what calls machine.Serial, by name, and the stage unit runs the test functions of which that is a
// statement, in the packages that have some: anything else would be left out of both.
func TestWhatRunsWithoutTheRaceDetectorRuns(t *testing.T) {
	raced := stages(t, "race")
	var all []string
	for _, f := range source(t) {
		calls, marked := markCalls(f, "Serial"), markedTests(f, "Serial")
		all = append(all, marked...)
		if calls != len(marked) {
			t.Errorf("%s: only a test function itself calls machine.Serial, once", f.name)
		}
		if len(marked) > 0 && !slices.Contains(raced, "./"+f.dir) {
			t.Errorf("%s: no test of this package runs with the race detector, so machine.Serial says nothing", f.name)
		}
	}
	if len(all) == 0 {
		t.Error("no test calls machine.Serial")
	}
	named := regexp.MustCompile("^(" + strings.Join(all, "|") + ")$")
	for _, f := range source(t) {
		if slices.Contains(raced, "./"+f.dir) && count(f, named) != len(markedTests(f, "Serial")) {
			t.Errorf("%s: a test of another file has the name of one here and calls machine.Serial, so the stage race leaves out both", f.name)
		}
	}
}

// The stage e2e leaves out by name what calls machine.Thorough, and the stage long runs that by name.
func TestWhatIsThoroughIsLeftToTheLongRun(t *testing.T) {
	onCluster := stages(t, "cluster")
	var all []string
	for _, f := range source(t) {
		marked := markedTests(f, "Thorough")
		all = append(all, marked...)
		if markCalls(f, "Thorough") != len(marked) {
			t.Errorf("%s: only a test function itself calls machine.Thorough, once", f.name)
		}
		if len(marked) > 0 && !slices.Contains(onCluster, "./"+f.dir) {
			t.Errorf("%s: no stage leaves out its tests that call machine.Thorough", f.name)
		}
	}
	if len(all) == 0 {
		t.Fatal("no test calls machine.Thorough")
	}
	named := regexp.MustCompile("^(" + strings.Join(all, "|") + ")$")
	for _, f := range source(t) {
		if slices.Contains(onCluster, "./"+f.dir) && count(f, named) != len(markedTests(f, "Thorough")) {
			t.Errorf("%s: a test of another file has the name of one here and calls machine.Thorough, so the stage e2e leaves out both", f.name)
		}
	}
}

// markCalls counts the calls of a function of package machine in a file.
func markCalls(f file, function string) int {
	calls := 0
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if isMark(n, function) {
			calls++
		}
		return true
	})
	return calls
}

// markedTests returns the test functions of a file of which a call of a function of package machine is a statement.
func markedTests(f file, mark string) []string {
	var marked []string
	for _, d := range f.syntax.Decls {
		function, ok := d.(*ast.FuncDecl)
		if !ok || function.Body == nil || !strings.HasPrefix(function.Name.Name, "Test") {
			continue
		}
		if slices.ContainsFunc(function.Body.List, func(s ast.Stmt) bool {
			e, ok := s.(*ast.ExprStmt)
			return ok && isMark(e.X, mark)
		}) {
			marked = append(marked, function.Name.Name)
		}
	}
	return marked
}

// isMark reports whether a node is a call of a function of package machine.
func isMark(n ast.Node, name string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || function.Sel.Name != name {
		return false
	}
	pkg, ok := function.X.(*ast.Ident)
	return ok && pkg.Name == "machine"
}

// The scripts that run without the race detector are named.
func TestScriptsOfStagesExist(t *testing.T) {
	_, names, _ := strings.Cut(strings.TrimSuffix(strings.Join(stages(t, "printing"), " "), ")$"), "(")
	scripts, err := filepath.Glob(filepath.Join(root, "cmd", "operetta", "testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(names, "|") {
		whole := regexp.MustCompile("^" + name + "$")
		if !slices.ContainsFunc(scripts, func(s string) bool { return whole.MatchString(strings.TrimSuffix(filepath.Base(s), ".txtar")) }) {
			t.Errorf("printing in test/stages.sh: there is no script %s", name)
		}
	}
}

// declares reports whether a file in one of some folders has a function with a name like that.
func declares(f file, dirs []string, name *regexp.Regexp) bool {
	return f.test && slices.Contains(dirs, f.dir) && count(f, name) > 0
}

// count returns how many functions of a file have a name like that.
func count(f file, name *regexp.Regexp) int {
	found := 0
	for _, d := range f.syntax.Decls {
		if function, ok := d.(*ast.FuncDecl); ok && name.MatchString(function.Name.Name) {
			found++
		}
	}
	return found
}

// mentions reports whether a file has a text among its literals.
func mentions(f file, text string) bool {
	found := false
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		found = found || ok && literal.Value == `"`+text+`"`
		return !found
	})
	return found
}
