package program_test

import (
	"slices"
	"strings"
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
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

// compile compiles a package that is head and more.
func compile(t testing.TB, more string) *program.Program {
	t.Helper()
	return inline.Program(t, head+more)
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
	inline.Decode(t, []byte(spec), &s)
	if s != nil {
		out["spec"] = s
	}
	return out
}

// session is a session with the given spec and live objects, in YAML.
func session(t testing.TB, spec, live string) program.Session {
	t.Helper()
	s := program.Session{CR: resource(t, spec)}
	inline.Decode(t, []byte(live), &s.Live)
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

// componentOf returns a component of a rollout.
func componentOf(t testing.TB, r program.Rollout, name string) program.Component {
	t.Helper()
	i := slices.IndexFunc(r.Components, func(c program.Component) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no component %s in %v", name, r.Components)
	}
	return r.Components[i]
}
