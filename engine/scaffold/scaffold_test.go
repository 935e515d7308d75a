package scaffold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/scaffold"
)

// newModule returns a folder with what operetta init makes for a package named greeter.
func newModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	p := scaffold.Package{Name: "greeter", Group: "example.com", Kind: scaffold.KindOf("greeter")}
	for _, files := range []func() ([]scaffold.File, error){p.Files, scaffold.Module{Path: "example.com/operators"}.Files, scaffold.Contract} {
		all, err := files()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			name := filepath.Join(dir, filepath.FromSlash(f.Path))
			if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, f.Content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// TestTheCueCommandUnderstandsANewPackage loads a new package as the cue command and the language server do, with no registry:
// with its tests, and without.
func TestTheCueCommandUnderstandsANewPackage(t *testing.T) {
	t.Parallel()
	dir := newModule(t)
	for name, tests := range map[string]bool{"the package": false, "with its tests": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			instances := load.Instances([]string{"./greeter"}, &load.Config{Dir: dir, Env: []string{"CUE_REGISTRY=none"}, Tests: tests})
			for _, instance := range instances {
				if instance.Err != nil {
					t.Fatal(instance.Err)
				}
				if err := cuecontext.New().BuildInstance(instance).Validate(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTheStockCueCommandChecksAndRendersANewPackage runs the command as a user does who has it, with no registry.
func TestTheStockCueCommandChecksAndRendersANewPackage(t *testing.T) {
	t.Parallel()
	found, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "cue").Output()
	if err != nil {
		t.Fatal(err)
	}
	program, dir := strings.TrimSpace(string(found)), newModule(t)
	for name, row := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"vet":            {"nothing in it is wrong", []string{"vet", "-c=false", "./..."}, ""},
		"fmt":            {"it is written as cue writes it", []string{"fmt", "--check", "./greeter"}, ""},
		"export":         {"what it renders for the sample", []string{"export", "./greeter", "greeter/sample.yaml", "-l", "cr:", "-e", "components.page.objects.configmap.data"}, "{\n    \"index.html\": \"Hello\"\n}\n"},
		"a default":      {"the schema counts", []string{"export", "./greeter", "greeter/sample.yaml", "-l", "cr:", "-e", "components.web.objects.deployment.spec.replicas"}, "2\n"},
		"a whole object": {"Kubernetes types leave it concrete", []string{"export", "./greeter", "greeter/sample.yaml", "-l", "cr:", "-e", "components.web.objects.service.kind", "--out", "text"}, "Service\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, row.args...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "CUE_REGISTRY=none", "CUE_CACHE_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: cue %v: %v\n%s", row.reason, row.args, err, out)
			}
			if diff := cmp.Diff(row.want, string(out)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestWhatCannotNameAPackageIsSaid(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		p      scaffold.Package
		wrong  bool
		reason string
	}{
		"a plain name":              {scaffold.Package{Name: "web2", Group: "example.com", Kind: "Web2"}, false, ""},
		"a path":                    {scaffold.Package{Name: "../web", Group: "example.com", Kind: "Web"}, true, "it would be written elsewhere"},
		"a capital letter":          {scaffold.Package{Name: "Web", Group: "example.com", Kind: "Web"}, true, "a name of a CUE package in lower case is the habit"},
		"no name":                   {scaffold.Package{Group: "example.com"}, true, ""},
		"a kind that injects CUE":   {scaffold.Package{Name: "web", Group: "example.com", Kind: "X\"\nx: \""}, true, "it is written into a text of CUE"},
		"a group that injects CUE":  {scaffold.Package{Name: "web", Group: "e.com\"\nx: \"", Kind: "Web"}, true, "the same"},
		"a group without a domain":  {scaffold.Package{Name: "web", Group: "apps", Kind: "Web"}, true, "such groups are those of Kubernetes"},
		"a kind in lower case":      {scaffold.Package{Name: "web", Group: "example.com", Kind: "web"}, true, "kubectl would not find it as one expects"},
		"a kind that is very long":  {scaffold.Package{Name: "web", Group: "example.com", Kind: "W" + string(make([]byte, 70))}, true, "an API server refuses it"},
		"a kind of several capital": {scaffold.Package{Name: "web", Group: "example.com", Kind: "BigShop9"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := row.p.Check(); (err != nil) != row.wrong {
				t.Errorf("%v (%s)", err, row.reason)
			}
		})
	}
}
