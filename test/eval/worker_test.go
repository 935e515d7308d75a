package eval

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/compile"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/vet"
	"operetta.dev/engine/worker"
)

// workerArgument is the first argument of this program when it is a worker.
const workerArgument = "work"

func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != workerArgument {
		os.Exit(m.Run())
	}
	l, err := worker.ParseLimits(os.Args[2], os.Args[3])
	if err == nil {
		err = worker.Serve(os.Stdin, os.Stdout, l)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// variedSpecs returns how many variants of each resource are evaluated: itself, and more in a sweep.
func variedSpecs() int {
	if os.Getenv("OPERETTA_TEMPLATE_SESSIONS") == "" {
		return 1
	}
	return 3
}

// TestWorkersReturnWhatCUEReturns evaluates resources of every package of the repository, before and after
// their objects and inputs exist: what a worker returns is deeply equal to what CUE returns in this process.
func TestWorkersReturnWhatCUEReturns(t *testing.T) {
	t.Parallel()
	pool := worker.NewPool(worker.Options{
		Command: []string{os.Args[0], workerArgument}, Size: 2, Limits: worker.Limits{Memory: 1 << 30, Time: time.Minute},
	})
	t.Cleanup(pool.Close)
	for name, p := range everyPackage(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := pool.Package(p)
			random := rand.New(rand.NewPCG(1, 2))
			for i, s := range vet.Samples(p) {
				for v := range variedSpecs() {
					cr := runtime.DeepCopyJSON(s.CR)
					if spec, ok := cr["spec"].(map[string]any); ok && v > 0 {
						vary(random, spec)
					}
					next := program.Session{CR: cr}
					for range 3 {
						r := sameInWorker(t, fmt.Sprintf("resource %d, variant %d", i, v), p, in, next)
						if v == 0 {
							sameTemplate(t, fmt.Sprintf("resource %d", i), p, in, next)
						}
						next = observed(next, r)
					}
				}
			}
		})
	}
}

// sameInWorker evaluates a session here and in a worker.
func sameInWorker(t *testing.T, name string, p *program.Program, in *worker.Package, s program.Session) program.Rollout {
	t.Helper()
	want, wantErr := p.Evaluate(s)
	got, err := in.Evaluate(t.Context(), s)
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(want, got))
	}
	if fmt.Sprintf("%T %v", wantErr, wantErr) != fmt.Sprintf("%T %v", err, err) {
		t.Errorf("%s: got %v, want %v", name, err, wantErr)
	}
	var wantFaults, faults fault.Faults
	if errors.As(wantErr, &wantFaults) != errors.As(err, &faults) || !reflect.DeepEqual(wantFaults, faults) {
		t.Errorf("%s: got the faults %v, want %v", name, faults, wantFaults)
	}
	sameConfirmed(t, name, in, s, want, wantErr)
	for _, c := range want.Components {
		if len(c.Objects) > 0 {
			o := c.Objects[0]
			for _, path := range []string{"metadata.name", "spec.template.spec.containers[0].image", "data"} {
				if want, got := p.Locate(s, c.Name, o.Name, path), in.Locate(t.Context(), s, c.Name, o.Name, path); want != got {
					t.Errorf("%s: %s is at %s, want %s", name, path, got, want)
				}
			}
		}
	}
	return want
}

// sameConfirmed asks a worker whether a session gives a rollout, and another one: the answer is what CUE says in both cases.
func sameConfirmed(t *testing.T, name string, in *worker.Package, s program.Session, want program.Rollout, wantErr error) {
	t.Helper()
	other := want
	other.RequeueAfter++
	for _, row := range []struct {
		expected program.Rollout
		may      bool
	}{{want, wantErr == nil}, {other, false}, {program.Rollout{}, wantErr == nil && reflect.DeepEqual(want, program.Rollout{})}} {
		got, confirmed, err := in.Confirm(t.Context(), s, row.expected)
		if !reflect.DeepEqual(want, got) || fmt.Sprint(wantErr) != fmt.Sprint(err) || confirmed && !row.may {
			t.Errorf("%s: it is confirmed: %v, errors %v and %v (-want +got):\n%s", name, confirmed, wantErr, err, cmp.Diff(want, got))
		}
		hides := strings.Contains(fmt.Sprintf("%+v", want), "not shown")
		if row.may && !confirmed && !hides {
			t.Errorf("%s: what CUE says is not confirmed", name)
		}
	}
}

// sameTemplate compiles a session here and in a worker.
func sameTemplate(t *testing.T, name string, p *program.Program, in *worker.Package, s program.Session) {
	t.Helper()
	compiler := compile.New(p)
	want := compiler.Compile(s, compiler.Pins())
	got, err := in.Compile(t.Context(), s, compiler.Pins())
	if err != nil || !reflect.DeepEqual(want.Rollout, got.Rollout) || (want.Template == nil) != (got.Template == nil) {
		t.Errorf("%s: the template %v (%v), want %v", name, got.Template, err, want.Template)
	}
	if diff := cmp.Diff(want.Untranslated, got.Untranslated); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	if diff := cmp.Diff(want.Pins.Paths(), got.Pins.Paths()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	if got.Template == nil {
		return
	}
	if r, err := got.Template.Eval(p.Views().Of(s).Values()); err != nil || !reflect.DeepEqual(r, want.Rollout) {
		t.Errorf("%s: by the template (%v):\n%s", name, err, cmp.Diff(want.Rollout, r))
	}
}

// observed returns a session as it is after a rollout: its objects and inputs exist, with what an API server
// and controllers add.
func observed(s program.Session, r program.Rollout) program.Session {
	out := program.Session{CR: s.CR, Config: s.Config, Live: map[string]map[string]map[string]any{}, Inputs: map[string]program.FoundInput{}}
	live := func(object map[string]any) map[string]any {
		object = runtime.DeepCopyJSON(object)
		meta, _ := object["metadata"].(map[string]any)
		meta["uid"], meta["resourceVersion"], meta["generation"] = "uid-of-"+fmt.Sprint(meta["name"]), "17", int64(2)
		meta["managedFields"] = []any{map[string]any{"manager": "operetta", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}}
		if object["kind"] == "Secret" {
			meta["annotations"] = map[string]any{program.SaltAnnotation: "0123", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
		}
		object["status"] = map[string]any{
			"replicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1), "observedGeneration": int64(2), "phase": "Bound",
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T00:00:00Z", "weight": 0.5}},
		}
		return object
	}
	for _, c := range r.Components {
		for _, o := range c.Objects {
			if o.Manifest == nil || o.Manifest["metadata"] == nil {
				continue
			}
			if out.Live[c.Name] == nil {
				out.Live[c.Name] = map[string]map[string]any{}
			}
			out.Live[c.Name][o.Name] = live(o.Manifest)
		}
	}
	for _, in := range r.Inputs {
		name := in.Object
		if name == "" {
			name = "some"
		}
		apiVersion, kind := in.Kind.ToAPIVersionAndKind()
		object := live(map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "default"},
			"data": map[string]any{"password": "c2VjcmV0IQ==", "key": "1", "url": "http://x"}, "spec": map[string]any{"replicas": int64(1)},
		})
		out.Inputs[in.Name] = program.FoundInput{Several: in.Object == "", Objects: []map[string]any{object}}
	}
	return out
}
