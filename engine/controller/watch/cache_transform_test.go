package watch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/reconcile"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

const marked = "operetta.dev/owner: Shop.example.com default/shop"

// large returns a ConfigMap of some size.
func large(name, annotation string, size int) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"blob": strings.Repeat("x", size)}}}
	u.SetNamespace("default")
	u.SetName(name)
	u.SetUID("uid-1")
	u.SetResourceVersion("7")
	u.SetLabels(map[string]string{"operetta.dev/owner": "forged", "more": "x"})
	u.SetFinalizers([]string{cluster.TeardownFinalizer, "evil/x"})
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "carol", Operation: metav1.ManagedFieldsOperationApply}})
	if key, value, ok := strings.Cut(annotation, ": "); ok {
		u.SetAnnotations(map[string]string{key: value, "long": strings.Repeat("y", 1000)})
	}
	return u
}

func TestACacheKeepsTheWholeOfSmallObjectsAlone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   bool
	}{
		"what is rendered":       {"most objects are", large("a", marked, 8<<10), true},
		"1 MB of a resource":     {"it may be forged, and is read when it is wanted", large("a", marked, 1<<20), false},
		"1 MB with a label":      {"attack 5b", large("a", "", 1<<20), false},
		"16 KiB with a label":    {"it says of nobody that it is its own", large("a", "", 16<<10), false},
		"little with a label":    {"somebody has taken the annotation away", large("a", "", 1<<10), true},
		"an odd owner":           {"it says of nobody that it is its own", large("a", "operetta.dev/owner: x", 16<<10), false},
		"many small annotations": {"they take memory as well", manyAnnotations(2000), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := row.object.DeepCopy()
			kept, err := stripObject(row.object)
			u, _ := kept.(*unstructured.Unstructured)
			if err != nil || isStripped(u) == row.want {
				t.Fatalf("%s: error %v, stripped %v", row.reason, err, isStripped(u))
			}
			if row.want {
				if diff := cmp.Diff(before, u); diff != "" {
					t.Errorf("%s (-want +got):\n%s", row.reason, diff)
				}
				return
			}
			if n := sizeOf(u.Object, 1<<30); n > 2<<10 {
				t.Errorf("%d bytes are kept: %v", n, u.Object)
			}
			for what, same := range map[string]bool{
				"UID": u.GetUID() == before.GetUID(), "version": u.GetResourceVersion() == "7", "name": cluster.RefOf(u) == cluster.RefOf(before),
				"owner":     u.GetAnnotations()["operetta.dev/owner"] == before.GetAnnotations()["operetta.dev/owner"],
				"label":     u.GetLabels()["operetta.dev/owner"] == before.GetLabels()["operetta.dev/owner"],
				"finalizer": len(u.GetFinalizers()) <= 1,
			} {
				if !same {
					t.Errorf("the %s is not as it was", what)
				}
			}
		})
	}
}

func manyAnnotations(n int) *unstructured.Unstructured {
	u := large("a", marked, 0)
	all := u.GetAnnotations()
	for i := range n {
		all[fmt.Sprint("k", i)] = ""
	}
	u.SetAnnotations(all)
	return u
}

// TestALargeResourceWakesAsASmallOneDoes compares what is meaningful about changes.
func TestALargeResourceWakesAsASmallOneDoes(t *testing.T) {
	t.Parallel()
	const before = "{metadata: {uid: a, generation: 1, labels: {a: b}, finalizers: [operetta.dev/teardown]}, status: {phase: Ready, inventory: [{component: web}]}}"
	for name, after := range map[string]string{
		"nothing":       before,
		"the status":    "{metadata: {uid: a, generation: 1, labels: {a: b}, finalizers: [operetta.dev/teardown]}, status: {phase: Failed, inventory: []}}",
		"the spec":      "{metadata: {uid: a, generation: 2, labels: {a: b}, finalizers: [operetta.dev/teardown]}, status: {phase: Ready, inventory: [{component: web}]}}",
		"a label":       "{metadata: {uid: a, generation: 1, labels: {a: c}, finalizers: [operetta.dev/teardown]}, status: {phase: Ready, inventory: [{component: web}]}}",
		"a lost field":  "{metadata: {uid: a, generation: 1, labels: {a: b}, finalizers: [operetta.dev/teardown]}, spec: {lost: x}, status: {phase: Ready, inventory: [{component: web}]}}",
		"an annotation": "{metadata: {uid: a, generation: 1, labels: {a: b}, finalizers: [operetta.dev/teardown], annotations: {x: z}}, status: {phase: Ready, inventory: [{component: web}]}}",
		"the deletion":  "{metadata: {uid: a, generation: 1, deletionTimestamp: '2026-01-01T00:00:00Z', labels: {a: b}, finalizers: [operetta.dev/teardown]}, status: {phase: Ready, inventory: [{component: web}]}}",
		"the inventory": "{metadata: {uid: a, generation: 1, labels: {a: b}, finalizers: [operetta.dev/teardown]}, status: {phase: Ready}}",
		"a question":    "{metadata: {uid: a, generation: 1, labels: {a: b}, finalizers: [operetta.dev/teardown]}, status: {phase: Ready, inventory: [], conditions: [{type: PackageBroken, reason: Asking}]}}",
		"the finalizer": "{metadata: {uid: a, generation: 1, labels: {a: b}}, status: {phase: Ready, inventory: [{component: web}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := reconcile.SpecOrMetadataChanged(inline.Object(t, before), inline.Object(t, after))
			stripped := func(text string) *unstructured.Unstructured {
				u := inline.Object(t, text)
				u.Object["spec"] = map[string]any{"blob": strings.Repeat("x", 1<<20), "more": u.Object["spec"]}
				kept, err := stripResource(u)
				out, _ := kept.(*unstructured.Unstructured)
				if err != nil || !isStripped(out) || sizeOf(out.Object, 1<<20) > 2<<10 {
					t.Fatalf("it is not stripped (error %v)", err)
				}
				return out
			}
			if got := reconcile.SpecOrMetadataChanged(stripped(before), stripped(after)); got != want {
				t.Errorf("it is meaningful: %v, want %v", got, want)
			}
		})
	}
}

func TestALargeObjectIsReadOnceForEachVersion(t *testing.T) {
	t.Parallel()
	reads := 0
	version := "1"
	read := func(_ context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
		reads++
		u := large(ref.Name, marked, 1<<20)
		u.SetResourceVersion(version)
		return u, nil
	}
	w := newLargeObjects()
	get := func(name, cached string, want int) {
		t.Helper()
		full := large(name, marked, 1<<20)
		full.SetResourceVersion(cached)
		kept, err := stripObject(full)
		if err != nil {
			t.Fatal(err)
		}
		u, err := w.readFull(t.Context(), kept.(*unstructured.Unstructured), read)
		if err != nil || isStripped(u) || reads != want {
			t.Errorf("%s at %s: error %v, %d reads, want %d", name, cached, err, reads, want)
		}
	}
	get("a", "1", 1)
	get("a", "1", 1)
	version = "2"
	get("a", "2", 2)
	get("a", "2", 2)
	written := large("b", marked, 1<<20)
	written.SetResourceVersion("3")
	w.note(written)
	get("b", "3", 2) // this process wrote it
	known := w.last.size
	if w.note(large("small", marked, maxCachedSize/2)); w.last.size != known {
		t.Error("what a cache keeps as it is is remembered as well")
	}
	for i := range 100 {
		get(fmt.Sprint("c", i), "2", 3+i)
	}
	if w.last.size > largeObjectsSize || len(w.last.items) != w.last.order.Len() {
		t.Errorf("%d bytes of %d objects are remembered", w.last.size, len(w.last.items))
	}
	gone := func(context.Context, cluster.Ref) (*unstructured.Unstructured, error) { return nil, nil }
	kept, _ := stripObject(large("a", marked, 1<<20))
	if u, err := w.readFull(t.Context(), kept.(*unstructured.Unstructured), gone); u != nil || err != nil {
		t.Errorf("what is gone is %v (error %v)", u, err)
	}
	refused := errors.New("refused")
	if _, err := w.readFull(t.Context(), kept.(*unstructured.Unstructured), func(context.Context, cluster.Ref) (*unstructured.Unstructured, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
}

// TestLabelledObjectsDoNotFillTheCache is attack 5b: 450 ConfigMaps of 1 MB.
func TestLabelledObjectsDoNotFillTheCache(t *testing.T) {
	machine.Serial(t)
	const objects = 450
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc >> 20
	}
	for name, row := range map[string]struct {
		transform toolscache.TransformFunc
		most      int
	}{
		"as they come": {func(o any) (any, error) { return o, nil }, 1 << 30},
		"stripped":     {guarded(logr.Discard(), stripObject), objects << 11},
		"panicking":    {guarded(logr.Discard(), func(any) (any, error) { panic("odd") }), objects << 11},
	} {
		began := heap()
		store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc, toolscache.WithTransformer(row.transform))
		for i := range objects {
			if err := store.Add(large(fmt.Sprint("a", i), []string{"", marked}[i%2], 1<<20)); err != nil {
				t.Fatal(err)
			}
		}
		kept := 0
		for _, o := range store.List() {
			kept += sizeOf(o.(*unstructured.Unstructured).Object, 1<<30)
		}
		t.Logf("%s: %d KiB of %d MiB are kept; the heap was %d MiB and is %d MiB", name, kept>>10, objects, began, heap())
		runtime.KeepAlive(store)
		if kept > row.most {
			t.Errorf("%s: %d bytes are kept of %d objects", name, kept, objects)
		}
	}
}
