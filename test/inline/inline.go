// Package inline makes packages, objects and data of the texts that tests have them as.
package inline

import (
	"regexp"
	"sync"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/lru"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// clause matches the package clause of a file.
var clause = regexp.MustCompile(`(?m)^package (\w+)`)

// Snapshot returns a package of one file. The folder and the file have the name of the package: that of
// package shop is shop/shop.cue.
func Snapshot(t testing.TB, text string) *source.Snapshot {
	t.Helper()
	found := clause.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no package clause:\n%s", text)
	}
	name := found[1]
	s, err := source.Loader{}.Module(name, "", name, fstest.MapFS{name + "/" + name + ".cue": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Program loads a package of one file; see Snapshot.
func Program(t testing.TB, text string) *program.Program {
	t.Helper()
	p, err := Load(Snapshot(t, text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// maxLoaded is how many packages Load remembers. Each takes a few megabytes, and ten times as much under the race detector.
const maxLoaded = 24

// loaded has what loads the packages that tests have loaded last.
var loaded = struct {
	sync.Mutex

	by *lru.Cache
}{by: lru.New(maxLoaded)}

// A version tells packages apart whose files are all that they consist of.
type version struct{ digest, name, dir, origin, prefix string }

// Load returns what program.Load returns. Tests that load the same package share the program, as the resources of a kind do in an operator:
// compiling the contract with it takes most of the time of such a test.
func Load(s *source.Snapshot) (*program.Program, error) {
	if len(s.Kinds()) > 0 || len(s.Definitions()) > 0 || len(s.OverlayFiles()) > 0 {
		return program.Load(s)
	}
	return loader(s)()
}

// loader returns what loads a package, once for all who ask for it.
func loader(s *source.Snapshot) func() (*program.Program, error) {
	loaded.Lock()
	defer loaded.Unlock()
	key := version{s.Digest(), s.Name(), s.Dir(), s.Origin(), s.DisplayPrefix()}
	v, _ := loaded.by.Get(key)
	load, known := v.(func() (*program.Program, error))
	if !known {
		load = sync.OnceValues(func() (*program.Program, error) { return program.Load(s) })
		loaded.by.Add(key, load)
	}
	return load
}

// Decode reads YAML into data as an API server has it, with integers as int64.
func Decode[Text string | []byte](t testing.TB, text Text, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// Object returns an object that is written in YAML.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	Decode(t, text, &u.Object)
	return u
}
