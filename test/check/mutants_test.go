package check_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"operetta.dev/engine/check"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// TestMostFaultsThatArePutIntoAPackageAreFound puts faults into packages that are in order: the first of each kind, or all of
// them if the test runs at full length.
func TestMostFaultsThatArePutIntoAPackageAreFound(t *testing.T) {
	t.Parallel()
	long := os.Getenv("OPERETTA_TEST_LONG") != ""
	kinds := map[string]bool{}
	tried, missed, shown := 0, []string{}, map[showing]int{}
	for _, m := range mutants {
		if kinds[m.kind] && !long {
			continue
		}
		kinds[m.kind] = true
		tried++
		how, resources, err := m.find(t, long)
		if err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if how == "" {
			missed = append(missed, m.String())
		}
		for _, of := range resources {
			shown[of]++
		}
		t.Logf("%s: %s %q", m, how, resources)
	}
	if len(mutants) < 60 || len(kinds) < 15 {
		t.Errorf("there are %d mutants of %d kinds, want 60 of 15", len(mutants), len(kinds))
	}
	t.Logf("%d of %d were found; resources: %v", tried-len(missed), tried, shown)
	if len(missed)*20 > tried {
		t.Errorf("%d of %d were found; not found were:\n%s", tried-len(missed), tried, strings.Join(missed, "\n"))
	}
}

func (m mutant) String() string {
	return m.kind + " in " + path.Base(m.dir) + "/" + m.file + ": " + strings.TrimSpace(m.to)
}

// find says how a mutant was found, or "", and how the resources of the findings show it. Unless it is thorough, it ends with
// the first resource that shows it.
func (m mutant) find(t *testing.T, thorough bool) (how string, resources []showing, err error) {
	t.Helper()
	s, err := source.Loader{}.Module(path.Base(m.dir), "", m.dir, m.module(t))
	if err != nil {
		return "", nil, err
	}
	p, err := program.Load(s)
	if faults, is := errors.AsType[fault.Faults](err); is {
		return "it does not load: " + faults.Error(), nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	e := vet.Examine(p, nil)
	known, _, _ := e.All()
	if len(known) > 0 {
		how = "a rule: " + known[0].Error()
	}
	types := e.Types(known)
	if len(types) > 0 && how == "" {
		how = "a type: " + types[0].Error()
	}
	known = append(known, types...)
	found := false
	report, err := check.Run(t.Context(), p, check.Options{
		Known:  known,
		Found:  func(check.Counterexample) { found = true },
		Enough: func() bool { return found && !thorough },
	})
	if err != nil {
		return how, nil, err
	}
	if how == "" && len(report.Counterexamples) > 0 {
		how = "a resource: " + report.Counterexamples[0].Fault.Error()
	}
	for _, f := range report.Counterexamples {
		of := shownBy(t, p, f)
		if of == nowhere {
			t.Errorf("%s: %s: the resource shows nothing: %v", m, f.Fault, f.Resource["spec"])
		}
		resources = append(resources, of)
	}
	for _, f := range report.Reached {
		resources = append(resources, leadingThere+": "+shownBy(t, p, f))
	}
	return how, resources, nil
}

// module returns the module with the mutation.
func (m mutant) module(t *testing.T) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	for _, dir := range []string{"cue.mod", m.dir} {
		err := fs.WalkDir(os.DirFS(filepath.Join(root, dir)), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || path.Ext(name) != ".cue" {
				return err
			}
			data, err := os.ReadFile(filepath.Join(root, dir, name))
			out[path.Join(dir, name)] = &fstest.MapFile{Data: data}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	file := out[path.Join(m.dir, m.file)]
	before := string(file.Data)
	after := strings.Replace(before, m.from, m.to, 1)
	if m.from == "" {
		after = before + m.to
	}
	if before == after {
		t.Fatalf("%s: the text is not there", m)
	}
	file.Data = []byte(after)
	return out
}
