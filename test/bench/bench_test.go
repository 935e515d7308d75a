// Package bench measures what an evaluation of the reference package costs.
//
//	go test -run '^$' -bench . ./test/bench
package bench

import (
	"maps"
	"testing"

	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

const reference = "../../cue/webapp"

func load(b testing.TB) *program.Program {
	b.Helper()
	s, err := source.Loader{}.Folder(reference)
	if err != nil {
		b.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// resource is a WebApp with every component.
func resource() map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "WebApp",
		"metadata":   map[string]any{"name": "nginx-app", "namespace": "default", "uid": "1", "generation": int64(1)},
		"spec": map[string]any{
			"image":       "nginx:1.25",
			"env":         map[string]any{"A": "1", "B": "2"},
			"files":       map[string]any{"index.html": "<h1>hello</h1>"},
			"secrets":     map[string]any{"TOKEN": "t"},
			"ingress":     map[string]any{"enabled": true},
			"autoscaling": map[string]any{"enabled": true, "minReplicas": int64(2)},
		},
	}
}

// settled returns the session at rest: every object exists as it was rendered,
// with a status and what an API server adds.
func settled(b testing.TB, p *program.Program) program.Session {
	b.Helper()
	s := program.Session{CR: resource(), Live: map[string]map[string]map[string]any{}}
	for range 3 { // as deep as the package's longest chain of references
		r := rolloutOf(b, p, s)
		for _, c := range r.Components {
			for _, o := range c.Objects {
				if o.Manifest != nil {
					observe(s.Live, c.Name, o.Name, o.Manifest)
				}
			}
		}
	}
	for _, c := range rolloutOf(b, p, s).Components {
		if c.Rendering != program.RenderedComplete {
			b.Fatalf("component %s is not settled: %v %v", c.Name, c.Faults, c.Missing)
		}
		for _, v := range c.Verify {
			if v.Verdict != program.True {
				b.Fatalf("component %s is not settled: %s", c.Name, v.Explain())
			}
		}
	}
	return s
}

func observe(live map[string]map[string]map[string]any, component, object string, manifest map[string]any) {
	metadata := map[string]any{"namespace": "default", "uid": "1", "resourceVersion": "1", "generation": int64(1)}
	own, _ := manifest["metadata"].(map[string]any)
	maps.Copy(metadata, own)
	seen := map[string]any{"status": map[string]any{"observedGeneration": int64(1), "availableReplicas": int64(2)}}
	maps.Copy(seen, manifest)
	seen["metadata"] = metadata
	if live[component] == nil {
		live[component] = map[string]map[string]any{}
	}
	live[component][object] = seen
}

func rolloutOf(b testing.TB, p *program.Program, s program.Session) program.Rollout {
	b.Helper()
	r, err := p.Evaluate(s)
	if err != nil {
		b.Fatal(err)
	}
	if len(r.Invalid) > 0 {
		b.Fatal(r.Invalid)
	}
	return r
}

// BenchmarkLoad is reading and compiling the package, as after an edit.
func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		load(b)
	}
}

// BenchmarkFirstEvaluation is the first evaluation of a fresh program, with no
// object there yet.
func BenchmarkFirstEvaluation(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		p := load(b)
		b.StartTimer()
		rolloutOf(b, p, program.Session{CR: resource()})
	}
}

// BenchmarkUnchangedEvaluation is an evaluation at rest: all eight objects are
// there, and healthy.
func BenchmarkUnchangedEvaluation(b *testing.B) {
	p := load(b)
	s := settled(b, p)
	objects := 0
	for _, c := range rolloutOf(b, p, s).Components {
		objects += len(c.Objects)
	}
	b.ReportAllocs()
	for b.Loop() {
		rolloutOf(b, p, s)
	}
	b.ReportMetric(float64(objects), "objects")
}

// BenchmarkRememberedEvaluation is what the operator pays at rest: the package and all
// that it sees are as they were, and the last answer stands.
func BenchmarkRememberedEvaluation(b *testing.B) {
	p := load(b)
	s := settled(b, p)
	memo := evaluate.New(p, evaluate.Options{})
	if _, err := memo.Evaluate(s); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := memo.Evaluate(s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTemplateEvaluation is what the operator pays for a session that differs from all others in its values.
func BenchmarkTemplateEvaluation(b *testing.B) {
	p := load(b)
	s := settled(b, p)
	e := evaluate.New(p, evaluate.Options{})
	delete(s.CR["metadata"].(map[string]any), "uid") // so that nothing is remembered
	if _, err := e.Evaluate(s); err != nil {         // it compiles the template
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Evaluate(s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParallelEvaluation is the same on all cores.
func BenchmarkParallelEvaluation(b *testing.B) {
	p := load(b)
	s := settled(b, p)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := p.Evaluate(s); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
