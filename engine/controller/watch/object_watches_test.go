package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestAnObjectWithTheUIDOfAnotherResourceWakesNobody(t *testing.T) {
	t.Parallel()
	object := func(uid, refers string) *unstructured.Unstructured {
		u := inline.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: a, annotations: {operetta.dev/owner: Shop.example.com default/shop}}}")
		if uid != "" {
			u.SetAnnotations(map[string]string{"operetta.dev/owner": "Shop.example.com default/shop", "operetta.dev/owner-uid": uid})
		}
		if refers != "" {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Shop", Name: "shop", UID: types.UID(refers)}})
		}
		return u
	}
	unmarked := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u.SetAnnotations(nil)
		return u
	}
	for name, row := range map[string]struct {
		reason        string
		before, after *unstructured.Unstructured // without one of them it was made, or is gone
		known         types.UID
		want          int
	}{
		"its own":                     {"it changes", object("u1", ""), object("u1", ""), "u1", 1},
		"of another UID":              {"it is forged, or of a resource that was there before", object("u2", ""), object("u2", ""), "u1", 0},
		"made with another UID":       {"it is forged", nil, object("u2", ""), "u1", 0},
		"of no UID":                   {"it is from before there were UIDs", object("", ""), object("", ""), "u1", 1},
		"a resource that is unknown":  {"the cache may be late", object("u2", ""), object("u2", ""), "", 1},
		"whose UID was taken away":    {"it was its own, and is repaired", object("u1", ""), object("u2", ""), "u1", 1},
		"whose mark was taken away":   {"it was its own, and is repaired", object("u1", ""), unmarked(object("u1", "")), "u1", 1},
		"that refers to its resource": {"the reference says more than the mark", object("u2", "u1"), object("u2", "u1"), "u1", 1},
		"of another UID that is gone": {"the one that is there now waited for that", object("u2", ""), nil, "u1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := priorityqueue.New[ctrl.Request]("test")
			defer q.ShutDown()
			w := &objectWatches{owner: OwnerKind{
				GroupKind: schema.GroupKind{Group: "example.com", Kind: "Shop"}, UID: func(types.NamespacedName) types.UID { return row.known },
			}}
			switch h := w.handler(); {
			case row.before == nil:
				h.Create(t.Context(), event.CreateEvent{Object: row.after}, q)
			case row.after == nil:
				h.Delete(t.Context(), event.DeleteEvent{Object: row.before}, q)
			default:
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: row.before, ObjectNew: row.after}, q)
			}
			if got := q.Len(); got != row.want {
				t.Errorf("%s: %d resources were woken, want %d", row.reason, got, row.want)
			}
		})
	}
}

func TestOnlyAnObjectWhereItCanBeWakesAResource(t *testing.T) {
	t.Parallel()
	reach, err := program.ParseReach("ConfigMap=platform-* Namespace read:Secret=*")
	if err != nil {
		t.Fatal(err)
	}
	const bob = "App.example.com tenant-b/w1"
	for name, row := range map[string]struct {
		reason, kind, namespace, mark string
		want                          int
	}{
		"beside it":              {"it may be its own", "Secret", "tenant-b", bob, 1},
		"of another tenant":      {"attack 5a", "Secret", "tenant-a", bob, 0},
		"of a kind within reach": {"the package may own it there", "ConfigMap", "platform-1", bob, 1},
		"elsewhere":              {"the package may own none there", "ConfigMap", "tenant-a", bob, 0},
		"cluster-scoped":         {"the package may own Namespaces", "Namespace", "", bob, 1},
		"beyond reach":           {"and no Nodes", "Node", "", bob, 0},
		"what is read only":      {"it is nobody's", "Secret", "platform-1", bob, 0},
		"of another kind":        {"another controller has it", "Secret", "tenant-b", "Web.example.com tenant-b/w1", 0},
		"a cluster-scoped owner": {"it may own whatever its package renders", "Secret", "tenant-a", "App.example.com w1", 1},
		"no mark":                {"it is nobody's", "Secret", "tenant-b", "", 0},
		"not served":             {"the operator asks about no resource of a namespace that it does not serve", "ConfigMap", "platform-1", "App.example.com tenant-z/w1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &objectWatches{owner: OwnerKind{GroupKind: schema.GroupKind{Group: "example.com", Kind: "App"}, Reach: func() program.Reach { return reach }, Serves: func(namespace string) bool { return namespace != "tenant-z" }}}
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("v1")
			u.SetKind(row.kind)
			u.SetNamespace(row.namespace)
			u.SetName("x")
			u.SetAnnotations(map[string]string{"operetta.dev/owner": row.mark})
			if diff := cmp.Diff(row.want, len(w.requests(t.Context(), client.Object(u)))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
