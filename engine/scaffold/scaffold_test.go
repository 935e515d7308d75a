package scaffold_test

import (
	"os"
	"path/filepath"
	"testing"

	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"operetta.dev/engine/scaffold"
)

// TestTheCueCommandUnderstandsANewPackage loads a new package as the cue command does, with no registry.
func TestTheCueCommandUnderstandsANewPackage(t *testing.T) {
	t.Parallel()
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
	instances := load.Instances([]string{"./greeter"}, &load.Config{Dir: dir, Env: []string{"CUE_REGISTRY=none"}})
	if err := instances[0].Err; err != nil {
		t.Fatal(err)
	}
	v := cuecontext.New().BuildInstance(instances[0])
	if err := v.Validate(); err != nil {
		t.Error(err)
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
