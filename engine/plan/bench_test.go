package plan_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/plan"
	"operetta.dev/test/machine"
	"operetta.dev/test/snapshot"
)

// many is how many resources the benchmark has.
const many = 1000

// manyShops returns a dump of many resources with two objects each. Each is rolled out on a cluster of its own, because
// together they take minutes.
func manyShops(t testing.TB) *plan.Dump {
	t.Helper()
	p := load(t, body)
	by := evaluate.New(p, evaluate.Options{})
	var all catalog
	for i := range many {
		w := dryrun.New(types.NamespacedName{}, p)
		w.EvaluateWith(shopKind.GroupKind(), by)
		if _, err := w.Put(shop(fmt.Sprint("shop-", i), map[string]any{"size": int64(1)})); err != nil {
			t.Fatal(err)
		}
		if err := w.Run(t.Context(), func(dryrun.Step) {}); err != nil {
			t.Fatal(err)
		}
		all = append(all, snapshot.Served{World: w})
	}
	return read(t, dumped(t, all, plan.Options{New: plan.Version{Program: p, Evaluates: by}}))
}

// A catalog is several clusters that look like one.
type catalog []snapshot.Served

// of returns the cluster that has an object. Each object begins with the name of its resource.
func (c catalog) of(name string) snapshot.Served {
	var number int
	_, _ = fmt.Sscanf(name, "shop-%d", &number) // objects of none are in the first one
	return c[number]
}

func (c catalog) Resources(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, one := range c {
		found, err := one.Resources(ctx, kind)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (c catalog) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	return c.of(ref.Name).Get(ctx, ref)
}

func (c catalog) List(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	return c.of(s.Name).List(ctx, s)
}

func (c catalog) Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	return c[0].Owned(ctx, namespace, label, value)
}

func (c catalog) Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	return c[0].Scope(ctx, kind)
}

// planLimit is how long a plan of many resources of a dump may take.
const planLimit = 10 * time.Second

// BenchmarkPlan plans 1,000 resources of a dump, as the command does except for the worker processes.
func BenchmarkPlan(b *testing.B) {
	shops := manyShops(b)
	for class, after := range map[plan.Class]string{plan.Unchanged: body, plan.Changed: strings.Replace(body, "web:1", "web:2", 1)} {
		p := load(b, after)
		b.Run(string(class), func(b *testing.B) {
			defer machine.LimitProcessorTime(b, planLimit)()
			for b.Loop() {
				by := evaluate.New(p, evaluate.Options{Templates: evaluate.TemplatesChecked})
				got := make1(b, plan.Options{Cluster: shops, New: plan.Version{Program: p, Evaluates: by}, Parallel: runtime.GOMAXPROCS(0)})
				if n := got.Count(class); n != many {
					b.Fatalf("%d of %d resources are %s: %s", n, many, class, got.Text(explain.Plain))
				}
				if lines := strings.Count(got.Text(explain.Plain), "\n"); lines > 20 {
					b.Fatalf("the plan has %d lines", lines)
				}
			}
		})
	}
}
