package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"operetta.dev/test/harness"
)

// TestPackagesBelowAPatternComeAndGo adds a package to the tree of an operator that runs, removes it, and adds it
// again.
func TestPackagesBelowAPatternComeAndGo(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	body := "#Spec: text: string\ncomponents: one: objects: cm: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"NAME\", data: text: cr.spec.text}\n"
	first, second := newTestPackage(t, "firstbelow", body), newTestPackage(t, "secondbelow", body)
	root := t.TempDir()
	place := func(p *testPackage) string {
		t.Helper()
		s.Serves(p.Dir)
		dir := filepath.Join(root, "packages", p.Name)
		if err := os.CopyFS(dir, os.DirFS(p.Dir)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	place(first)
	o := s.StartOperator(root + "/...")
	one := s.Create(first.Thing(s.Env, "one", map[string]any{"text": "a"}))
	s.ExpectResourceReady(one)

	dir := place(second)
	o.ExpectLog("package loaded", "secondbelow")
	two := s.Create(second.Thing(s.Env, "two", map[string]any{"text": "a"}))
	s.ExpectResourceReady(two)
	s.ExpectData("secondbelow", "text", "a")

	// A tree that is replaced has no files for a moment.
	position := o.Log.Len()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	place(second)
	s.Patch(two, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("secondbelow", "text", "b")

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	o.ExpectLogAfter(position, "package withdrawn: its folder is gone", "secondbelow")
	s.ExpectObject(s.Ref("ConfigMap", "secondbelow"), "to stay", harness.Exists)
	s.Patch(one, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("firstbelow", "text", "b")

	s.Patch(two, harness.Spec(map[string]any{"text": "c"}))
	position = o.Log.Len()
	place(second)
	o.ExpectLogAfter(position, "package loaded", "secondbelow")
	s.ExpectData("secondbelow", "text", "c")
}
