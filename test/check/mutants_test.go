package check_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/check"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// TestMostFaultsThatArePutIntoAPackageAreFound puts faults into packages that are in order: the first of each kind, or all of
// them if the test runs at full length.
func TestMostFaultsThatArePutIntoAPackageAreFound(t *testing.T) {
	t.Parallel()
	long := os.Getenv("OPERETTA_TEST_LONG") != ""
	kinds := map[string]bool{}
	tried, missed := 0, []string{}
	for _, m := range mutants {
		if kinds[m.kind] && !long {
			continue
		}
		kinds[m.kind] = true
		tried++
		how, err := m.find(t, long)
		if err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if how == "" {
			missed = append(missed, m.String())
		}
		t.Logf("%s: %s", m, how)
	}
	if len(mutants) < 60 || len(kinds) < 15 {
		t.Errorf("there are %d mutants of %d kinds, want 60 of 15", len(mutants), len(kinds))
	}
	t.Logf("%d of %d were found", tried-len(missed), tried)
	if len(missed)*20 > tried {
		t.Errorf("%d of %d were found; not found were:\n%s", tried-len(missed), tried, strings.Join(missed, "\n"))
	}
}

func (m mutant) String() string {
	return m.kind + " in " + path.Base(m.dir) + "/" + m.file + ": " + strings.TrimSpace(m.to)
}

// find says how a mutant was found, or "". Unless it is thorough, it ends with the first resource that shows it.
func (m mutant) find(t *testing.T, thorough bool) (string, error) {
	t.Helper()
	s, err := source.New(m.module(t), m.dir, nil)
	if err != nil {
		return "", err
	}
	p, err := program.Load(s)
	if faults, is := errors.AsType[fault.Faults](err); is {
		return "it does not load: " + faults.Error(), nil
	}
	if err != nil {
		return "", err
	}
	e := vet.Examine(p, nil)
	if faults, _, _ := e.All(); len(faults) > 0 {
		return "a rule: " + faults[0].Error(), nil
	}
	if faults := e.Types(nil); len(faults) > 0 {
		return "a type: " + faults[0].Error(), nil
	}
	found := false
	report, err := check.Run(t.Context(), p, check.Options{
		Found:  func(check.Counterexample) { found = true },
		Enough: func() bool { return found && !thorough },
	})
	if err != nil || len(report.Counterexamples) == 0 {
		return "", err
	}
	for _, f := range report.Counterexamples {
		m.wantShown(t, p, f)
	}
	return "a resource: " + report.Counterexamples[0].Fault.Error(), nil
}

// wantShown fails unless rendering the resource of a finding shows a fault, or something else than the package
// without the mutation.
func (m mutant) wantShown(t *testing.T, p *program.Program, f check.Counterexample) {
	t.Helper()
	got, gotErr := rendered(t.Context(), p, f)
	if gotErr != nil || len(got.Faults) > 0 {
		return
	}
	want, err := rendered(t.Context(), load(t, m.dir), f)
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(visible(want), visible(got)) {
		t.Errorf("%s: %s: the resource shows nothing: %v", m, f.Fault, f.Resource["spec"])
	}
}

func rendered(ctx context.Context, p *program.Program, f check.Counterexample) (render.Output, error) {
	return render.Render(ctx, p, render.Input{CR: f.Resource, Manifests: f.Live})
}

// visible is what a person sees of an output.
func visible(out render.Output) map[string]any {
	all := map[string]any{"invalid": out.Invalid.Error(), "faults": out.Faults.Error(), "status": out.Status}
	for _, c := range out.Components {
		all[c.Name] = string(c.State) + c.Message
	}
	for _, o := range out.Objects() {
		all[o.Path()] = o.Manifest
	}
	return all
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
