package program_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/util/yaml"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// head is the beginning of every package that is written in a test.
const head = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
#Spec: {size: int & >=1 & <=5 | *2, name?: string, pools?: [string]: int, any?: {...}}
`

// headLines is how many lines head has.
var headLines = strings.Count(head, "\n")

// snapshot returns a package of one file.
func snapshot(t testing.TB, text string) *source.Snapshot {
	t.Helper()
	s, err := source.New(fstest.MapFS{"shop/shop.cue": {Data: []byte(text)}}, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compile compiles a package that is head and more.
func compile(t testing.TB, more string) *program.Program {
	t.Helper()
	p, err := program.Load(snapshot(t, head+more))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// resource is a custom resource with the given spec, in YAML.
func resource(t testing.TB, spec string) map[string]any {
	t.Helper()
	out := map[string]any{
		"apiVersion": "shop.example/v1",
		"kind":       "Shop",
		"metadata":   map[string]any{"name": "corner", "namespace": "town"},
	}
	var s map[string]any
	decode(t, []byte(spec), &s)
	if s != nil {
		out["spec"] = s
	}
	return out
}

// session is a session with the given spec and live objects, in YAML.
func session(t testing.TB, spec, live string) program.Session {
	t.Helper()
	s := program.Session{CR: resource(t, spec)}
	decode(t, []byte(live), &s.Live)
	return s
}

func evaluate(t testing.TB, p *program.Program, s program.Session) program.Rollout {
	t.Helper()
	r, err := p.Evaluate(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Invalid) > 0 {
		t.Fatal(r.Invalid)
	}
	return r
}

// decode reads YAML into unstructured data, with integers as int64.
func decode(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// componentOf returns a component of a rollout.
func componentOf(t testing.TB, r program.Rollout, name string) program.Component {
	t.Helper()
	i := slices.IndexFunc(r.Components, func(c program.Component) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no component %s in %v", name, r.Components)
	}
	return r.Components[i]
}
