package program_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8s "k8s.io/apimachinery/pkg/runtime"

	"operetta.dev/engine/program"
	"operetta.dev/test/machine"
)

// large is a package with eight objects, every kind of edge and predicate, and
// loops over maps.
const large = `
_labels: {app: cr.metadata.name, for k, v in *cr.spec.any.labels | {} {(k): v}}
_meta: {name: cr.metadata.name, labels: _labels}
components: {
	config: {
		objects: {
			files: {apiVersion: "v1", kind: "ConfigMap", metadata: _meta, data: {for k, v in *cr.spec.any.files | {} {(k): v}}}
			secret: {apiVersion: "v1", kind: "Secret", metadata: _meta, data: token: 'secret'}
			account: {apiVersion: "v1", kind: "ServiceAccount", metadata: _meta}
		}
		outputs: sum: len(objects.files.data)
	}
	web: {
		dependsOn: config: {}
		objects: {
			deployment: {
				apiVersion: "apps/v1"
				kind:       "Deployment"
				metadata:   _meta
				spec: {
					replicas: cr.spec.size
					selector: matchLabels: _labels
					template: {
						metadata: {labels: _labels, annotations: sum: "\(components.config.outputs.sum)"}
						spec: containers: [{
							name:  "web"
							image: "nginx"
							env: [for k, v in *cr.spec.any.env | {} {"name": k, value: v}]
							ports: [{name: "http", containerPort: 80}]
						}]
					}
				}
			}
			service: {apiVersion: "v1", kind: "Service", metadata: _meta, spec: {selector: _labels, ports: [{port: 80}]}}
		}
		verify: {
			available: live.web.deployment.status.availableReplicas >= cr.spec.size
			observed:  live.web.deployment.status.observedGeneration == live.web.deployment.metadata.generation
		}
		failed: stuck: live.web.deployment.status.phase == "Failed"
		outputs: service: live.web.service.metadata.name
	}
	ingress: {
		when: cr.spec.size > 1
		objects: ingress: {apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: _meta, spec: service: components.web.outputs.service}
	}
	scaling: objects: hpa: {apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: _meta}
	pdb: objects: pdb: {apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: _meta}
}
status: ready: *live.web.deployment.status.availableReplicas | 0
requeueAfter: "30s"
`

// largeSession has maps of several keys wherever there may be one.
func largeSession(t testing.TB) program.Session {
	t.Helper()
	return session(t, `
size: 3
any:
  labels: {a: "1", b: "2", c: "3", d: "4", e: "5", f: "6"}
  files: {z.html: "1", y.html: "2", x.html: "3", w.html: "4"}
  env: {Z: "1", Y: "2", X: "3", W: "4", V: "5"}
`, `
web:
  deployment: {metadata: {name: corner, generation: 2}, status: {availableReplicas: 2, observedGeneration: 2, extra: 1, more: 2}}
  service: {metadata: {name: corner, namespace: town}}
config:
  files: {metadata: {name: corner}}
`)
}

// copied returns a session with maps that were filled anew.
func copied(s program.Session) program.Session {
	out := program.Session{CR: k8s.DeepCopyJSON(s.CR), Live: map[string]map[string]map[string]any{}}
	for component, objects := range s.Live {
		out.Live[component] = map[string]map[string]any{}
		for name, object := range objects {
			out.Live[component][name] = k8s.DeepCopyJSON(object)
		}
	}
	return out
}

func rolloutJSON(t testing.TB, p *program.Program, s program.Session) string {
	t.Helper()
	return string(toJSON(t, evaluate(t, p, s)))
}

func toJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The order of Go's maps differs each time that one is ranged over, so that one
// run of this is a hundred different orders.
func TestTheSameSessionGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	p := compile(t, large)
	s := largeSession(t)
	want := rolloutJSON(t, p, s)
	for range 100 {
		if diff := cmp.Diff(want, rolloutJSON(t, p, copied(s))); diff != "" {
			t.Fatalf("-first +this:\n%s", diff)
		}
	}
	if diff := cmp.Diff(want, rolloutJSON(t, compile(t, large), s)); diff != "" {
		t.Fatalf("another program of the same package (-first +this):\n%s", diff)
	}
}

// What has been through encoding/json in another process has floats for integers.
func TestFloatsFromJSONAreIntegers(t *testing.T) {
	t.Parallel()
	p := compile(t, large)
	s := largeSession(t)
	var floats program.Session
	var into any = &floats
	if err := json.Unmarshal(toJSON(t, s), into); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(evaluate(t, p, s), evaluate(t, p, floats)); diff != "" {
		t.Errorf("-integers +floats:\n%s", diff)
	}
}

// A session is the caller's: what an informer's cache holds must not change.
func TestEvaluationLeavesTheSessionAlone(t *testing.T) {
	t.Parallel()
	s := largeSession(t)
	before := copied(s)
	evaluate(t, compile(t, large), s)
	if diff := cmp.Diff(before, s); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

// Run with -race: the program is shared, the sessions differ.
func TestOneProgramServesManyGoroutines(t *testing.T) {
	t.Parallel()
	p := compile(t, large)
	want := map[int64]string{}
	sessions := map[int64]program.Session{}
	for size := int64(1); size <= 4; size++ {
		s := largeSession(t)
		s.CR["spec"].(map[string]any)["size"] = size
		sessions[size], want[size] = s, rolloutJSON(t, p, s)
	}
	invalid := session(t, `{size: 500}`, `{}`)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for n := range 2 {
				size := int64((i+n)%4 + 1)
				if got := rolloutJSON(t, p, sessions[size]); got != want[size] {
					t.Errorf("size %d: %s", size, cmp.Diff(want[size], got))
				}
				if r, err := p.Evaluate(invalid); err != nil || len(r.Invalid) != 1 {
					t.Errorf("invalid: %v %v", r.Invalid, err)
				}
				_, _ = p.Template(), p.Static().CRSchema().Validate()
			}
		})
	}
	group.Wait()
}

// A context that kept something of each evaluation would end in an out of memory
// after days. CUE keeps each name of a field for good, so the names do not change.
func TestEvaluationsKeepNothing(t *testing.T) {
	machine.Serial(t)
	p := compile(t, large)
	s := largeSession(t)
	invalid := session(t, `{size: 500}`, `{}`)
	const evaluations = 60
	round := func() {
		for i := range evaluations {
			s.CR["metadata"].(map[string]any)["uid"] = fmt.Sprint(i)
			s.CR["spec"].(map[string]any)["name"] = fmt.Sprint("name-", i)
			evaluate(t, p, s)
		}
		if _, err := p.Evaluate(invalid); err != nil {
			t.Fatal(err)
		}
	}
	round() // caches of the runtime and of CUE fill up
	before := heap()
	round()
	kept := (int64(heap()) - int64(before)) / evaluations
	if kept > 1024 {
		t.Errorf("each evaluation keeps %d bytes", kept)
	}
	runtime.KeepAlive(p)
}

// heap returns the bytes in use once all garbage is gone.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkEvaluate is an evaluation of a package with eight objects.
func BenchmarkEvaluate(b *testing.B) {
	p := compile(b, large)
	s := largeSession(b)
	b.ReportAllocs()
	for b.Loop() {
		evaluate(b, p, s)
	}
}
