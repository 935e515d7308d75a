package program_test

import (
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// The digest of what an object holds rests on more than the package refers to.
func TestADigestThatChangesIsPartOfTheView(t *testing.T) {
	t.Parallel()
	p := compile(t, `
inputs: it: {apiVersion: "v1", kind: "Secret", name: "it"}
components: web: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c", data: of: inputs.it.object.metadata.annotations["operetta.dev/digest"]}
`)
	digest := func(secret string) (any, template.Key) {
		t.Helper()
		s := session(t, `{}`, `{}`)
		s.CR["metadata"].(map[string]any)["uid"] = "1"
		s.Inputs = map[string]program.FoundInput{"it": {Objects: []map[string]any{{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "it", "namespace": "town", "uid": "u"}, "data": map[string]any{"key": secret},
		}}}}
		r, err := p.Evaluate(s)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := r.Components[0].Objects[0].Manifest["data"].(map[string]any)
		return data["of"], p.Views().Of(s).Whole()
	}
	first, firstView := digest("YQ==")
	if first == nil || first == "" {
		t.Fatal("there is no digest")
	}
	if second, view := digest("Yg=="); second == first || view == firstView {
		t.Errorf("another content has the same digest %v", first)
	}
	if again, view := digest("YQ=="); again != first || view != firstView {
		t.Errorf("the same content has the digests %v and %v", first, again)
	}
}

// What surrounds a template must not cost what the template saves.
func TestAViewAndItsShapeCostFewAllocations(t *testing.T) {
	p := compile(t, `
components: web: {
	objects: d: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: {for k, v in cr.spec.any {(k): v}}}
	verify: it: len([for c in live.web.d.status.conditions if c.type == "Ready" {c}]) > 0 && live.web.d.spec.n == cr.spec.size
}
`)
	s := session(t, `{size: 2, any: {a: x, b: {c: [y, z]}}}`, `{web: {d: {metadata: {name: d, labels: {a: b}}, spec: {n: 2, x: {y: z}}, status: {conditions: [{type: Ready, status: "True"}]}}}}`)
	// The maps of the view, of live and of the component, and nothing for what is below them.
	if n := testing.AllocsPerRun(100, func() { p.Views().Of(s) }); n > 10 {
		t.Errorf("a view takes %v allocations", n)
	}
	view := p.Views().Of(s)
	if n := testing.AllocsPerRun(100, func() { view.Shape(template.Pins{}) }); n > 1 {
		t.Errorf("a shape takes %v allocations", n)
	}
}
