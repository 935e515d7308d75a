// Package inline makes packages, objects and data of the texts that tests have them as.
package inline

import (
	"regexp"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
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
	s, err := source.New(fstest.MapFS{name + "/" + name + ".cue": {Data: []byte(text)}}, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Program loads a package of one file; see Snapshot.
func Program(t testing.TB, text string) *program.Program {
	t.Helper()
	p, err := program.Load(Snapshot(t, text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
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
