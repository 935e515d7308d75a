package bench

import (
	"testing"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/program"
)

// BenchmarkTemplate is an evaluation at rest without CUE, and what it is made of and beside: its
// compilation, the view and its shape, and a rendering of five of the objects that is written in Go.
func BenchmarkTemplate(b *testing.B) {
	p := load(b)
	s := settled(b, p)
	c := compile.New(p)
	r := c.Compile(s, c.Pins())
	if r.Template == nil {
		b.Fatal(r.Untranslated)
	}
	view := p.Views().Of(s)
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"evaluation", func() { _, _ = r.Template.Eval(view.Values()) }},
		{"view", func() { p.Views().Of(s) }},
		{"shape", func() { view.Shape(r.Pins) }},
		{"compilation", func() { c.Compile(s, r.Pins) }},
		{"by hand", func() { byHand(s) }},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				part.do()
			}
		})
	}
}

// maxAllocations is how many allocations an evaluation of the reference package by a template may take: it
// has 36 maps of two each.
const maxAllocations = 99

func TestATemplateAllocatesLittleMoreThanWhatItReturns(t *testing.T) {
	p := load(t)
	s := settled(t, p)
	c := compile.New(p)
	r := c.Compile(s, c.Pins())
	if r.Template == nil {
		t.Fatal(r.Untranslated)
	}
	view := p.Views().Of(s)
	got := testing.AllocsPerRun(100, func() { _, _ = r.Template.Eval(view.Values()) })
	if got > maxAllocations {
		t.Errorf("an evaluation takes %v allocations, want at most %d", got, maxAllocations)
	}
}

// byHand renders what a controller in Go would, as unstructured content.
func byHand(s program.Session) []map[string]any {
	meta, _ := s.CR["metadata"].(map[string]any)
	spec, _ := s.CR["spec"].(map[string]any)
	name := meta["name"]
	labels := map[string]any{"app.kubernetes.io/instance": name, "app.kubernetes.io/name": "webapp"}
	selector := map[string]any{"app.kubernetes.io/instance": name}
	metadata := func() map[string]any { return map[string]any{"name": name, "labels": labels} }
	var env []any
	values, _ := spec["env"].(map[string]any)
	for k, v := range values {
		env = append(env, map[string]any{"name": k, "value": v})
	}
	return []map[string]any{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(), "data": spec["files"]},
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(), "automountServiceAccountToken": false},
		{"apiVersion": "v1", "kind": "Service", "metadata": metadata(), "spec": map[string]any{
			"selector": selector, "ports": []any{map[string]any{"name": "http", "port": int64(80), "targetPort": "http"}},
		}},
		{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata(), "spec": map[string]any{
			"maxUnavailable": int64(1), "selector": map[string]any{"matchLabels": selector},
		}},
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(), "spec": map[string]any{
			"replicas": int64(3), "selector": map[string]any{"matchLabels": selector},
			"template": map[string]any{
				"metadata": map[string]any{"labels": selector},
				"spec": map[string]any{
					"serviceAccountName": name,
					"containers": []any{map[string]any{
						"name": "web", "image": spec["image"], "env": env,
						"ports":     []any{map[string]any{"name": "http", "containerPort": int64(80)}},
						"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}},
					}},
					"volumes": []any{map[string]any{"name": "config", "configMap": map[string]any{"name": name}}},
				},
			},
		}},
	}
}
