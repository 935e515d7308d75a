package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// swapLimit is the time within which a saved change of a package has to take effect.
const swapLimit = 2 * time.Second

func TestRunningOperatorTakesAnEditOfItsPackageWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := copyPackage(t, "webapp", nil)
	o := s.StartOperator(p.dir)
	s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.ExpectReady("shop")
	harness.Fastest(t, swapLimit, "an edit to take effect", func(try int) time.Duration {
		tier := fmt.Sprintf("tier-%d", try)
		from, position := harness.MarkAudit(t), o.Log.Len()
		p.edit("names.cue", `"app.kubernetes.io/name": "webapp"`, `"app.kubernetes.io/name": "webapp", tier: "`+tier+`"`)
		took := harness.Within(t, harness.Timeout, "the label of the edited package", func() error {
			if got := s.Get("Deployment", "shop").GetLabels()["tier"]; got != tier {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
		t.Logf("the edit took effect after %s", took.Round(time.Millisecond))
		t.Log(o.ExpectLogAfter(position, "package replaced", "package=webapp"))
		s.ExpectReady("shop")
		t.Logf("writes: %s", s.OperatorRequests(from).Mutating())
		p.revert("names.cue")
		s.ExpectObject(s.Ref("Deployment", "shop"), "to lose the label", func(u *unstructured.Unstructured) error {
			if _, has := u.GetLabels()["tier"]; has {
				return harness.ErrNotYet
			}
			return nil
		})
		s.ExpectReady("shop")
		return took
	})
}

func TestF2BrokenEditLeavesTheLastGoodVersionRunning(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]struct{ old, new, says string }{
		"a syntax error":       {`_name: cr.metadata.name`, `_name: cr.metadata.name }`, "names.cue:4"},
		"an unknown reference": {`_name: cr.metadata.name`, `_name: _nothing`, "names.cue:4"},
		"a conflict":           {`_name: cr.metadata.name`, "_name: \"a\"\n_name: \"b\"", "names.cue:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := copyPackage(t, "webapp", nil)
			o := s.StartOperator(p.dir)
			cr := s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
			s.ExpectReady("shop")
			s.WaitUntilIdle()
			from, position, began := harness.MarkAudit(t), o.Log.Len(), time.Now()
			p.edit("names.cue", edit.old, edit.new)
			line := o.ExpectLogAfter(position, "last good version keeps running", edit.says)
			t.Logf("said after %s: %s", harness.Elapsed(began), line)
			s.reconcileOnce("shop")
			// If that takes long, the status already says which version serves.
			if writes := s.OperatorRequests(from).Mutating().Filter(func(e controlplane.AuditEvent) bool { return e.Subresource != "status" }); len(writes) > 0 {
				t.Errorf("the broken package caused writes: %s", writes)
			}
			// The last good version continues to reconcile.
			s.Patch(cr, harness.Spec(map[string]any{"image": "nginx:1.26"}))
			s.ExpectReady("shop")

			position = o.Log.Len()
			p.revert("names.cue")
			p.edit("names.cue", `"app.kubernetes.io/name": "webapp"`, `"app.kubernetes.io/name": "webapp", fixed: "yes"`)
			s.ExpectObject(s.Ref("Deployment", "shop"), "to have the label of the fixed package", func(u *unstructured.Unstructured) error {
				if u.GetLabels()["fixed"] != "yes" {
					return harness.ErrNotYet
				}
				return nil
			})
			o.ExpectLogAfter(position, "package replaced")
			s.ExpectReady("shop")
		})
	}
}

// editablePackage is a package that a test may change.
type editablePackage struct {
	t         *testing.T
	dir, from string
}

// copyPackage returns a copy of a package of the repository in a module of its own, with replacements
// in all of its files.
func copyPackage(t *testing.T, name string, replace map[string]string) *editablePackage {
	t.Helper()
	return copyFolder(t, harness.PackageDir(name), replace)
}

// copyFolder returns such a copy of the package in a folder.
func copyFolder(t *testing.T, from string, replace map[string]string) *editablePackage {
	t.Helper()
	return &editablePackage{t: t, dir: harness.CopyPackage(t, from, replace), from: from}
}

// edit replaces a text that occurs exactly once in a file.
func (p *editablePackage) edit(file, from, to string) {
	p.t.Helper()
	path := filepath.Join(p.dir, file)
	b, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	if n := strings.Count(string(b), from); n != 1 {
		p.t.Fatalf("%s holds %q %d times", file, from, n)
	}
	harness.WriteFile(p.t, path, strings.Replace(string(b), from, to, 1))
}

// revert restores a file from the repository.
func (p *editablePackage) revert(file string) {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.from, file))
	if err != nil {
		p.t.Fatal(err)
	}
	harness.WriteFile(p.t, filepath.Join(p.dir, file), string(b))
}
