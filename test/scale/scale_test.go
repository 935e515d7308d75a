package main

import (
	"context"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/internal/screen"
	"operetta.dev/test/internal/testcache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxWrites is how many writes the creation of a resource may take: its objects and three.
	maxWrites = 8 + 3
	// progressEvery is the minimum interval between two more, which report progress where a machine is slow.
	progressEvery = 3 * time.Second
)

func TestMain(m *testing.M) {
	// The programs are built from the root of the repository.
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	repository, err := testcache.Look(".")
	if err != nil {
		panic(err)
	}
	code, err := repository.Run(m)
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

func TestBothOperatorsMakeTheSameObjectsAndOperettaKeepsTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	if _, err := controlplane.Build(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	o := options{n: 3}
	if err := o.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	selected, err := selectScenarios("create,restart")
	if err != nil {
		t.Fatal(err)
	}
	compared, err := selectContestants(nameOperetta + "," + nameHandwritten)
	if err != nil {
		t.Fatal(err)
	}
	s := screen.New(os.Stdout)
	defer s.Close()
	var mu sync.Mutex
	made := map[string]map[string]any{}
	inspect := scenario{"inspect", "the objects", webApp, func(b *bench, ctx context.Context, _ func(string)) error {
		all, err := objects(ctx, b.plane)
		mu.Lock()
		defer mu.Unlock()
		made[b.name] = all
		return err
	}}
	t.Run("of", func(t *testing.T) {
		for _, c := range compared {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				r := &results{n: o.n}
				if err := measure(t.Context(), o, s, r, c, append(slices.Clip(selected), inspect)); err != nil {
					t.Fatal(err)
				}
				t.Log("\n" + strings.Join(text(r.rows()), "\n"))
				if c.name == nameOperetta {
					keepsTheBudget(t, r)
				}
				if writes, _ := r.value(c.name, "restart_writes"); writes > 0 {
					t.Errorf("it writes %v times at a restart", writes)
				}
			})
		}
	})
	if len(made[nameOperetta]) != o.n*8 {
		t.Errorf("there are %d objects of %d resources: %q", len(made[nameOperetta]), o.n, slices.Sorted(maps.Keys(made[nameOperetta])))
	}
	if diff := cmp.Diff(made[nameHandwritten], made[nameOperetta]); diff != "" {
		t.Errorf("the objects differ (-%s +%s):\n%s", nameHandwritten, nameOperetta, diff)
	}
}

// keepsTheBudget compares what a creation wrote with what it may. The budget is no other operator's: the
// handwritten one applies an object again that its cache does not have yet, how often depends on the machine.
func keepsTheBudget(t *testing.T, r *results) {
	t.Helper()
	took, _ := r.value(nameOperetta, "create_wall")
	most := maxWrites + math.Floor(took/progressEvery.Seconds())
	writes, measured := r.value(nameOperetta, "create_writes")
	if !measured || writes > most {
		t.Errorf("it writes %v times for each resource in %v s, more than %v", writes, took, most)
	}
}

// objects returns the objects of the resources without what is no matter of the operators.
func objects(ctx context.Context, p *plane) (map[string]any, error) {
	out := map[string]any{}
	for _, kind := range []schema.GroupVersionKind{
		configMaps, deployments, disruptionBudgets,
		{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "Service"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	} {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := p.admin.List(ctx, l, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for _, u := range l.Items {
			if len(u.GetOwnerReferences()) > 0 {
				out[kind.Kind+" "+u.GetName()] = essence(u)
			}
		}
	}
	return out, nil
}

// essence returns what an operator decides about an object. Each operator has marks of its own, and
// a checksum of the configuration of its own.
func essence(u unstructured.Unstructured) map[string]any {
	o := u.DeepCopy().Object
	delete(o, "status")
	m := map[string]any{"name": u.GetName(), "labels": unmarked(u.GetLabels()), "annotations": unmarked(u.GetAnnotations())}
	for _, owner := range u.GetOwnerReferences() {
		owner.UID = ""
		m["owner"] = owner
	}
	o["metadata"] = m
	for _, assigned := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(o, "spec", assigned)
	}
	if annotations, found, _ := unstructured.NestedMap(o, "spec", "template", "metadata", "annotations"); found {
		names := slices.Sorted(maps.Keys(annotations))
		_ = unstructured.SetNestedField(o, strings.Join(names, " "), "spec", "template", "metadata", "annotations")
	}
	return o
}

// unmarked leaves out the marks of operators and controllers.
func unmarked(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if !strings.HasPrefix(k, "operetta.dev/") && k != "example.com/applied" && k != "deployment.kubernetes.io/revision" {
			out[k] = v
		}
	}
	return out
}

func TestScenariosAreThere(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"chain":      "chain",
		"users":      "idle create edit users",
		"growth":     "",
		"rest,chain": "chain create rest",
	} {
		got, err := selectScenarios(name)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range got {
			names = append(names, s.name)
		}
		if diff := cmp.Diff(want, strings.Join(names, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := selectScenarios("none"); err == nil {
		t.Error("there is no error for a scenario that does not exist")
	}
}

func TestATableComparesWithTheHandwrittenOperator(t *testing.T) {
	t.Parallel()
	r := &results{n: 7}
	r.add(nameOperetta, "create_cpu", 15)
	r.add(nameHandwritten, "create_cpu", 10)
	r.add(nameOperetta, "idle_memory", 123.4)
	want := `| 7 resources | operetta | handwritten | ratio | goal |
|---|--:|--:|--:|---|
| creation: CPU per resource | 15.0 ms | 10.0 ms | 1.50 × | ≤ 18 ms, ≤ 1.5 × handwritten |
| without resources: memory | 123 MiB |  |  |  |
`
	if diff := cmp.Diff(want, markdown(r.rows())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	picture := t.TempDir() + "/plot.png"
	if err := r.plot(picture); err != nil {
		t.Fatal(err)
	}
}

func TestTheGridOfAPlotHasShortLabels(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		line, step   float64
		want, reason string
	}{
		{0, 0.1, "0.0", "the axis begins at nothing"},
		{3, 0.1, "0.3", "three times 0.1 is more than 0.3 in binary"},
		{2, 0.05, "0.10", "a small step has more places"},
		{4, 50, "200", "whole numbers have none"},
	} {
		if got := gridLabel(row.line, row.step); got != row.want {
			t.Errorf("line %v of steps of %v: %q, want %q: %s", row.line, row.step, got, row.want, row.reason)
		}
	}
}
