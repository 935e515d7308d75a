package render_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
	"operetta.dev/test/inline"
)

// header begins every package of these tests; its lines are counted in positions.
const header = `package site
import "operetta.dev/schemas/operator"
operator.#Controller
group: "example.com", kind: "Site"
versions: v1: spec: #Spec
#Spec: {on!: bool, size: *1 | int & <=9}
cr: spec: #Spec
live: _
#CM: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: string, ...}, data?: [string]: string}
`

// load compiles a package of which only the components are given.
func load(t *testing.T, body string) *program.Program {
	t.Helper()
	return inline.Program(t, header+body)
}

// site is the custom resource of these tests.
func site() map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Site",
		"metadata":   map[string]any{"name": "a"},
		"spec":       map[string]any{"on": true},
	}
}

// mustRender renders a package for a resource that is valid.
func mustRender(t *testing.T, p *program.Program, in render.Input) render.Output {
	t.Helper()
	if in.CR == nil {
		in.CR = site()
	}
	out, err := render.Render(t.Context(), p, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Invalid) > 0 {
		t.Fatalf("the custom resource is invalid: %v", out.Invalid)
	}
	return out
}

// paths returns what is rendered, in order.
func paths(out render.Output) []string {
	var got []string
	for _, o := range out.Objects() {
		got = append(got, o.Component+"."+o.Name)
	}
	return got
}

// states returns the state of each component.
func states(out render.Output) map[string]status.State {
	got := map[string]status.State{}
	for _, c := range out.Components {
		got[c.Name] = c.State
	}
	return got
}

// component returns one component of an output.
func component(t *testing.T, out render.Output, name string) rollout.ComponentPreview {
	t.Helper()
	for _, c := range out.Components {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no component %s", name)
	return rollout.ComponentPreview{}
}

// identity returns "Deployment.apps default/web".
func identity(object map[string]any) string {
	u := unstructured.Unstructured{Object: object}
	name := u.GetName()
	if u.GetNamespace() != "" {
		name = u.GetNamespace() + "/" + name
	}
	return u.GroupVersionKind().GroupKind().String() + " " + name
}

// definition returns as much of a CustomResourceDefinition as says where its objects live.
func definition(group, kind, scope string) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "x." + group},
		"spec": map[string]any{"group": group, "scope": scope, "names": map[string]any{"kind": kind}},
	}
}

func configMap(name string, data map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"data":       data,
	}
}
