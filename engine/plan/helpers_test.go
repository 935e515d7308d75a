package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/inline"
	"operetta.dev/test/snapshot"
)

// head begins each package of these tests.
const head = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "KIND"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
`

// load returns a package with a body, which has #Spec.
func load(t testing.TB, body string) *program.Program {
	t.Helper()
	return loadKind(t, "Shop", body)
}

// loadKind is load for another kind.
func loadKind(t testing.TB, kind, body string) *program.Program {
	t.Helper()
	snapshot, err := source.Loader{}.Module("shop", "", "shop", fstest.MapFS{
		"shop/a.cue": &fstest.MapFile{Data: []byte(strings.Replace(head, "KIND", kind, 1))},
		"shop/b.cue": &fstest.MapFile{Data: []byte("package shop\n" + body)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := inline.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var shopKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}

// shop returns a custom resource.
func shop(name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(shopKind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// object returns an object of the core group.
func object(kind, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// A served cluster is one in memory on which an operator has rolled resources out.
type served struct{ snapshot.Served }

// serve rolls resources out by a package, beside other objects.
func serve(t testing.TB, p *program.Program, objects ...*unstructured.Unstructured) served {
	t.Helper()
	out, err := snapshot.Serve(t.Context(), p, objects...)
	if err != nil {
		t.Fatal(err)
	}
	return served{out}
}

var _ plan.Snapshot = served{}

// edit changes an object as a person does.
func (s served) edit(t *testing.T, kind, name string, change func(*unstructured.Unstructured)) {
	t.Helper()
	gvk := schema.GroupVersionKind{Version: "v1", Kind: kind}
	switch kind {
	case "Shop":
		gvk = shopKind
	case "Deployment":
		gvk.Group = "apps"
	}
	u := s.World.Get(cluster.Ref{GroupVersionKind: gvk, Namespace: "default", Name: name})
	if u == nil {
		t.Fatalf("there is no %s %s", kind, name)
	}
	change(u)
	if _, err := s.World.Cluster.Put("person", u); err != nil {
		t.Fatal(err)
	}
}

// now is when the plans of these tests are made.
var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// make1 makes a plan.
func make1(t testing.TB, o plan.Options) plan.Plan {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = now
	}
	p, err := plan.Make(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// said returns a plan in short: a line for each resource, object, field, problem and order.
func said(p plan.Plan) []string {
	var out []string
	for _, r := range p.Resources {
		out = append(out, fmt.Sprintf("%s %s", r.Name, r.Class))
		for _, problem := range r.Problems {
			out = append(out, "  ! "+problem.String())
		}
		for _, o := range r.Objects {
			out = append(out, fmt.Sprintf("  %s %s: %s %s", o.Outcome, o.Component, o.Kind, o.Name))
			for _, f := range o.Fields {
				out = append(out, fmt.Sprintf("    %s: %s → %s", f.Path, f.Before, f.After))
			}
		}
		for _, o := range r.Order {
			out = append(out, "  order "+o.String())
		}
	}
	return out
}
