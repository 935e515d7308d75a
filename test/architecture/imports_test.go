package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layers are the packages of the engine from the top. A package may import what is in
// its own layer and below; its tests may look further.
var layers = [][]string{
	{"importer", "shadow"},
	{"testcase", "check", "why", "ui"},
	{"controller", "render", "plan", "capsule"},
	{"dryrun", "worker"},
	{"packages", "reconcile", "explain", "admission", "migration", "vet", "crd", "policy", "rbac", "install", "scaffold"},
	{"rollout"},
	{"ownership"},
	{"cluster"},
	{"patch"},
	{"verify", "status"},
	{"evaluate"},
	{"compile"},
	{"program"},
	{"graph", "fieldpath"},
	{"template"},
	{"source", "registry", "redact", "fault", "object", "certificates", "history"},
	{"signature"},
}

// layerOf returns the layer of a package of the engine, or -1.
func layerOf(name string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, name) })
}

// enginePackage returns the name of the package of the engine that a folder or import
// path, which begins with prefix, is part of.
func enginePackage(path, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(path, prefix)
	name, _, _ := strings.Cut(rest, "/")
	return name, ok
}

func TestEngineImportsPointDownwards(t *testing.T) {
	for _, f := range source(t) {
		from, ok := enginePackage(f.dir, "engine/")
		if !ok || f.test {
			continue
		}
		if layerOf(from) < 0 {
			t.Errorf("%s: engine/%s has no place in the order of packages; give it one in layers", f.name, from)
			continue
		}
		for _, path := range f.imports() {
			if to, ok := enginePackage(path, module+"/engine/"); ok && layerOf(to) < layerOf(from) {
				t.Errorf("%s imports engine/%s, which is above engine/%s", f.name, to, from)
			}
		}
	}
}

// A restriction limits which of the packages that ship may import some packages.
type restriction struct {
	// packages are prefixes of import paths; a prefix that ends in $ is a whole path.
	packages []string
	// within are the folders that it is about, but those of the others.
	within, allowed []string
	why             string
}

var restrictions = []restriction{
	{
		packages: []string{module + "/cmd"},
		within:   []string{"engine", "schemas"},
		why:      "the engine knows no command",
	},
	{
		packages: []string{module + "/test"},
		within:   []string{"engine", "schemas", "cmd/operetta"},
		why:      "what ships knows no test",
	},
	{
		packages: []string{
			"sigs.k8s.io/controller-runtime$",
			"sigs.k8s.io/controller-runtime/pkg/builder",
			"sigs.k8s.io/controller-runtime/pkg/controller",
			"sigs.k8s.io/controller-runtime/pkg/manager",
			"sigs.k8s.io/controller-runtime/pkg/reconcile",
		},
		within:  []string{"engine"},
		allowed: []string{"engine/controller"},
		why:     "only engine/controller knows controllers",
	},
	{
		packages: []string{
			"sigs.k8s.io/controller-runtime/pkg/client",
			"k8s.io/client-go/dynamic",
			"k8s.io/client-go/kubernetes$",
			"k8s.io/client-go/rest",
		},
		within:  []string{"engine"},
		allowed: []string{"engine/cluster", "engine/controller"},
		why:     "a cluster is reached through engine/cluster",
	},
}

func TestOnlySomePackagesKnowTheClusterCommandsAndTests(t *testing.T) {
	for _, f := range source(t) {
		if f.test {
			continue
		}
		for _, r := range restrictions {
			if !below(f.dir, r.within) || below(f.dir, r.allowed) {
				continue
			}
			for _, path := range f.imports() {
				if matches(path, r.packages) {
					t.Errorf("%s imports %s: %s", f.name, path, r.why)
				}
			}
		}
	}
}

func TestWhatDrawsProgressNeedsNoOtherModule(t *testing.T) {
	// They are built before anything is shown, so they have to be built in seconds.
	quick := []string{"test/demo", "test/internal/binary", "test/internal/gotool", "test/internal/screen", "test/internal/testcache", "test/controlplane", "engine/graph"}
	slow := []string{"engine/graph/picture"} // it has fonts
	for _, f := range source(t) {
		if f.test || !below(f.dir, quick) || below(f.dir, slow) {
			continue
		}
		for _, path := range f.imports() {
			first, _, _ := strings.Cut(path, "/")
			own, isOwn := strings.CutPrefix(path, module+"/")
			if isOwn && (!below(own, quick) || below(own, slow)) || !isOwn && strings.Contains(first, ".") {
				t.Errorf("%s imports %s", f.name, path)
			}
		}
	}
}

// kind is where a package of CUE names its custom resource.
var kind = regexp.MustCompile(`(?m)^kind:\s*"(\w+)"`)

func TestEngineKnowsNoOperator(t *testing.T) {
	var kinds []string
	err := walkAll(os.DirFS(filepath.Join(root, "cue")), func(_ string, content []byte) {
		for _, found := range kind.FindAllSubmatch(content, -1) {
			kinds = append(kinds, string(found[1]))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(kinds, "WebApp") {
		t.Errorf("the kinds of the operators were not found: %q", kinds)
	}
	err = walkAll(os.DirFS(filepath.Join(root, "engine")), func(name string, content []byte) {
		text := strings.ToLower(string(content))
		for _, k := range kinds {
			if strings.Contains(text, strings.ToLower(k)) {
				t.Errorf("engine/%s mentions %s", name, k)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// below reports whether a folder is one of some folders, or in one.
func below(dir string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return dir == f || strings.HasPrefix(dir, f+"/") })
}

// matches reports whether an import path begins with one of some prefixes.
func matches(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		if whole, ok := strings.CutSuffix(p, "$"); ok {
			return path == whole
		}
		return path == p || strings.HasPrefix(path, p+"/")
	})
}
