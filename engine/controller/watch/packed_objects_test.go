package watch

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// written is an object as an API server returns what the engine has applied, and a controller has updated.
const written = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  namespace: default
  uid: uid-1
  resourceVersion: "7"
  generation: 2
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {operetta.dev/owner: abc, app: shop}
  annotations: {operetta.dev/owner: Shop.example.com default/shop, operetta.dev/owner-uid: owner-1, operetta.dev/applied: sha256-1, note: mine}
  ownerReferences: [{apiVersion: example.com/v1, kind: Shop, name: shop, uid: owner-1, controller: true, blockOwnerDeletion: true}]
  managedFields:
  - {manager: operetta, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:00Z", fieldsV1: {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}}}}}}}}
  - {manager: kube-controller-manager, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1, subresource: status, fieldsV1: {"f:status": {"f:replicas": {}}}}
  - {manager: nobody, operation: Update, apiVersion: apps/v1}
spec:
  replicas: 3
  ratio: 1.0
  paused: false
  nothing: null
  template: {spec: {containers: [{name: web, image: nginx, args: [], env: [{name: A, value: ""}]}]}}
status: {replicas: 3, conditions: [{type: Available, status: "True"}]}
`

func TestWhatIsUnpackedIsWhatWasPacked(t *testing.T) {
	t.Parallel()
	odd := inline.Object(t, written)
	odd.Object["data"] = map[string]any{"text": "\xff\xfe", "big": int64(1) << 62, "negative": int64(-1), "float": 0.1, "empty": map[string]any{}}
	bare := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	unsayable := inline.Object(t, written)
	unsayable.Object["odd"] = func() {}
	for name, row := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		packed bool
	}{
		"an object":              {"most are like it", inline.Object(t, written), true},
		"odd values":             {"they come from users", odd, true},
		"almost nothing":         {"another operator may have marked it", bare, true},
		"what CBOR does not say": {"it cannot come from an API server, and must not be lost", unsayable, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ownership.CompactManagedFields(row.object)
			want := row.object.Object
			if row.packed { // a function cannot be copied
				want = row.object.DeepCopy().Object
			}
			kept := packed(row.object)
			if isPacked(kept) != row.packed {
				t.Fatalf("%s: it is packed: %v", row.reason, isPacked(kept))
			}
			if packed(kept) != kept {
				t.Error("it is packed twice")
			}
			got, err := unpacked(kept)
			if err != nil {
				t.Fatal(err)
			}
			if !row.packed {
				if got.GetManagedFields(); got != row.object || len(ownership.TakeFieldSets(got)) != 3 {
					t.Error("it has lost its managed fields")
				}
				return
			}
			if diff := cmp.Diff(want, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestAPackedObjectWakesAsTheWholeOneDoes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*unstructured.Unstructured)
		uid    string
	}{
		"of the resource":               {func(*unstructured.Unstructured) {}, "owner-1"},
		"of an earlier resource":        {func(*unstructured.Unstructured) {}, "owner-2"},
		"of one that only refers to it": {func(u *unstructured.Unstructured) { u.SetAnnotations(withUID(u, "owner-2")) }, "owner-1"},
		"of nobody":                     {func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }, "owner-1"},
		"that is being deleted":         {func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(new(metav1.Now())) }, "owner-1"},
		"of another kind":               {func(u *unstructured.Unstructured) { u.SetKind("Job") }, "owner-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := &objectWatches{owner: OwnerKind{
				GroupKind: schema.GroupKind{Group: "example.com", Kind: "Shop"},
				UID:       func(types.NamespacedName) types.UID { return types.UID(row.uid) },
				Reach:     func() program.Reach { return program.Reach{} },
			}}
			u := inline.Object(t, written)
			row.change(u)
			want := [][]ctrl.Request{own.requestsByUID(t.Context(), u), own.requests(t.Context(), u)}
			version, deleted := u.GetResourceVersion(), u.GetDeletionTimestamp() != nil
			kept := packed(u)
			if diff := cmp.Diff(want, [][]ctrl.Request{own.requestsByUID(t.Context(), kept), own.requests(t.Context(), kept)}); diff != "" {
				t.Errorf("(-whole +packed):\n%s", diff)
			}
			if kept.GetResourceVersion() != version || (kept.GetDeletionTimestamp() != nil) != deleted {
				t.Errorf("it is %v", kept.Object)
			}
		})
	}
}

func withUID(u *unstructured.Unstructured, uid string) map[string]string {
	out := u.GetAnnotations()
	out[ownership.OwnerUIDAnnotation] = uid
	return out
}

func TestAPackedObjectIsUnpackedOnceForEachVersion(t *testing.T) {
	t.Parallel()
	c := &Caches{finished: newFinishedObjects(), large: newLargeObjects(), shared: Shared{unpacked: newUnpackedObjects()}}
	live := func(context.Context, cluster.Ref) (*unstructured.Unstructured, error) {
		return nil, errors.New("it is read live")
	}
	read := func(version, text string) *unstructured.Unstructured {
		t.Helper()
		u := inline.Object(t, written)
		u.SetResourceVersion(version)
		u.Object["text"] = text
		kept, err := c.transform(u)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := c.transform(kept); again != kept || err != nil {
			t.Errorf("a resync keeps something else (error %v)", err)
		}
		out, err := c.readFull(t.Context(), kept.(*unstructured.Unstructured), live)
		if err != nil || out.Object["text"] != text {
			t.Errorf("version %s is %v, error %v", version, out, err)
		}
		return out
	}
	if first := read("7", "a"); read("7", "a") != first {
		t.Error("it is unpacked again")
	}
	read("8", "b")
	read("7", "a")
	if u, err := c.readFull(t.Context(), nil, live); u != nil || err != nil {
		t.Errorf("what is not there is %v, error %v", u, err)
	}
}

// TestPackedObjectsTakeAFractionOfTheMemory: they are most of what a fleet takes.
func TestPackedObjectsTakeAFractionOfTheMemory(t *testing.T) {
	machine.Serial(t)
	const objects = 2000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	size := func(keep func(*unstructured.Unstructured) *unstructured.Unstructured) uint64 {
		before, all := heap(), make([]*unstructured.Unstructured, objects)
		for i := range all {
			u := inline.Object(t, written)
			ownership.CompactManagedFields(u)
			all[i] = keep(u)
		}
		after := heap()
		runtime.KeepAlive(all)
		return (after - min(before, after)) / objects
	}
	whole, small := size(func(u *unstructured.Unstructured) *unstructured.Unstructured { return u }), size(packed)
	t.Logf("an object takes %d bytes, and %d packed", whole, small)
	if small*2 > whole {
		t.Errorf("an object takes %d bytes, and %d packed", whole, small)
	}
}

// A deletion tells by a finalizer that an object has a teardown of its own, and looks for it in the cache.
func TestAResourceWithATeardownIsDeletedInItsOwnOrderAlthoughItIsPacked(t *testing.T) {
	t.Parallel()
	c := &Caches{finished: newFinishedObjects(), large: newLargeObjects(), shared: Shared{unpacked: newUnpackedObjects()}}
	u := inline.Object(t, written)
	u.SetAPIVersion("example.com/v1")
	u.SetKind("Shop")
	u.SetFinalizers([]string{"example.com/dns", cluster.TeardownFinalizer})
	kept, err := c.transform(u.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	var got *client.DeleteOptions
	live := &cluster.Live{ReadFull: c.readFull}
	live.Client = fake.NewClientBuilder().WithScheme(apiruntime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			into.(apiruntime.Unstructured).SetUnstructuredContent(kept.(apiruntime.Unstructured).UnstructuredContent())
			return nil
		},
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, o ...client.DeleteOption) error {
			got = (&client.DeleteOptions{}).ApplyOptions(o)
			return nil
		},
	}).Build()
	live.Direct = live.Client
	if err := live.Delete(t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
		t.Fatal(err)
	}
	if got == nil || *got.PropagationPolicy != metav1.DeletePropagationBackground {
		t.Errorf("it is deleted with %v", got)
	}
}
