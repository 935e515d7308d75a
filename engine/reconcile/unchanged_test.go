package reconcile_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
)

// counted is a package that counts its evaluations.
type counted struct {
	*program.Program
	evaluations int
	epoch       string
}

// Epoch returns what it was set to.
func (c *counted) Epoch() string { return c.epoch }

// Evaluate implements reconcile.Package.
func (c *counted) Evaluate(s program.Session) (program.Rollout, error) {
	c.evaluations++
	return c.Program.Evaluate(s)
}

func TestAResourceAtRestIsNotEvaluatedUntilSomethingItReadsChanges(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
inputs: theme: {apiVersion: "v1", kind: "ConfigMap", name: "theme"}
components: web: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: text: *inputs.theme.object.data.text | "none"}
requeueAfter: "30s"
`)
	p := &counted{Program: b.program}
	steps := func(n int) (evaluations int) {
		t.Helper()
		before := p.evaluations
		for range n {
			b.now = b.now.Add(10 * time.Second)
			again, err := b.reconciler.Reconcile(t.Context(), shopKey, p)
			if err != nil {
				t.Fatal(err)
			}
			if n == 1 && again != 30*time.Second {
				t.Errorf("it comes again after %s", again)
			}
		}
		return p.evaluations - before
	}
	rest := func(reason, text string) {
		t.Helper()
		if n := steps(5); n == 0 {
			t.Errorf("%s: nothing was evaluated", reason)
		}
		if got := b.data("web", "text"); got != text {
			t.Errorf("%s: it says %q, want %q", reason, got, text)
		}
		if n := steps(1); n != 0 {
			t.Errorf("%s: %d evaluations at rest", reason, n)
		}
	}
	rest("it is created", "none")
	b.put(settings("default", "theme", map[string]any{"text": "dark"}))
	rest("an input appears", "dark")
	b.put(settings("default", "theme", map[string]any{"text": "light"}))
	rest("an input changes", "light")
	u := b.find("ConfigMap", "web")
	_ = unstructured.SetNestedField(u.Object, "else", "data", "text")
	b.put(u.Object)
	rest("an object drifts", "light")
	b.put(settings(configKey.Namespace, configKey.Name, map[string]any{"shop.yaml": ""}))
	rest("the configuration changes", "light")
	act(t, b.memory, map[string]any{"size": int64(2)})
	rest("the spec changes", "light")
	p.epoch = "1"
	rest("an earlier answer may have been wrong", "light")
}

// Each step that evaluates costs milliseconds for each of thousands of resources, at rest and after a restart.
func TestAResourceIsAtRestAfterOneStepThatFindsNothingToDo(t *testing.T) {
	t.Parallel()
	const own = `components: web: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: text: cr.spec.name}` + "\n"
	const input = `inputs: theme: {apiVersion: "v1", kind: "ConfigMap", name: "theme"}` + "\n"
	for name, row := range map[string]struct {
		reason, body string
		change       func(*testing.T, *bench)
		// want are the evaluations of the first, the second and the third quiet step.
		want [3]bool
	}{
		"a resource that was created": {"the step that wrote knows what the next one reads", own, nil, [3]bool{true, false, false}},
		"with an input":               {"it knows that, too", own + input, nil, [3]bool{true, false, false}},
		"after a restart":             {"the inventory says what is read", own, func(_ *testing.T, b *bench) { b.restart() }, [3]bool{true, false, false}},
		"with an input, after a restart": {
			"only an evaluation says which inputs there are", own + input,
			func(_ *testing.T, b *bench) { b.restart() },
			[3]bool{true, true, false},
		},
		"after a restart meanwhile somebody has changed an object": {
			"that is repaired, and then nothing is to do", own,
			func(t *testing.T, b *bench) {
				t.Helper()
				b.restart()
				u := b.find("ConfigMap", "web")
				_ = unstructured.SetNestedField(u.Object, "forged", "data", "text")
				b.put(u.Object)
				b.rest()
				if got := b.data("web", "text"); got != "shop" {
					t.Errorf("the object says %q", got)
				}
			},
			[3]bool{false, false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, row.body)
			p := &counted{Program: b.program}
			step := func() (evaluated, wrote bool) {
				t.Helper()
				evaluations, writes := p.evaluations, len(b.memory.Changes())
				b.now = b.now.Add(10 * time.Second)
				if _, err := b.reconciler.Reconcile(t.Context(), shopKey, p); err != nil {
					t.Fatal(err)
				}
				return p.evaluations > evaluations, len(b.memory.Changes()) > writes
			}
			for range 20 {
				if _, wrote := step(); !wrote {
					break
				}
			}
			var got [3]bool
			got[0] = true // it was the last of these
			first := 1
			if row.change != nil {
				row.change(t, b)
				first = 0
			}
			for i := first; i < len(got); i++ {
				got[i], _ = step()
			}
			if got != row.want {
				t.Errorf("%s: evaluated are %v, want %v", row.reason, got, row.want)
			}
		})
	}
}

// reading is a cluster that notes what is read from its cache.
type reading struct {
	cluster.Cluster
	mu   sync.Mutex
	refs map[string]bool
}

// GetCached implements cluster.Cluster.
func (r *reading) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	r.mu.Lock()
	r.refs[ref.String()] = true
	r.mu.Unlock()
	return r.Cluster.GetCached(ctx, ref)
}

func TestAForgedInventoryHasNothingReadOutOfReach(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: web: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}`)
	b.rest()
	b.edit(func(s map[string]any) {
		list, _ := s["inventory"].([]any)
		if len(list) == 0 {
			t.Fatal("there is no inventory")
		}
		group, _ := list[0].(map[string]any)
		objects, _ := group["objects"].([]any)
		group["objects"] = append(objects, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "kube-system", "name": "other", "object": "other"})
	})
	b.restart()
	r := &reading{Cluster: b.memory, refs: map[string]bool{}}
	b.reconciler.Cluster = r
	b.steps()
	for ref := range r.refs {
		if strings.Contains(ref, "kube-system") {
			t.Errorf("%s was read", ref)
		}
	}
	if len(r.refs) == 0 {
		t.Error("nothing was read")
	}
}

// No watch tells of an input whose kind is not served, so only another step sees it.
func TestAResourceWithAnOptionalInputOfAnUnservedKindIsNotAtRest(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
inputs: theme: {apiVersion: "x.example.com/v1", kind: "Theme", name: "main"}
components: web: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: text: *inputs.theme.object.spec.text | "none"}
requeueAfter: "5s"
`)
	step := func() {
		t.Helper()
		for range 5 {
			b.now = b.now.Add(10 * time.Second)
			if _, err := b.reconciler.Reconcile(t.Context(), shopKey, b.program); err != nil {
				t.Fatal(err)
			}
		}
	}
	step()
	if got := b.data("web", "text"); got != "none" {
		t.Errorf("it says %q", got)
	}
	b.memory.Serve(schema.GroupKind{Group: "x.example.com", Kind: "Theme"}, cluster.Namespaced)
	b.put(map[string]any{"apiVersion": "x.example.com/v1", "kind": "Theme", "metadata": map[string]any{"namespace": "default", "name": "main"}, "spec": map[string]any{"text": "dark"}})
	step()
	if got := b.data("web", "text"); got != "dark" {
		t.Errorf("it says %q when the kind is served", got)
	}
}
