package ownership_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

var owner = ownership.Owner{
	Ref: cluster.Ref{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"},
		Namespace:        "default", Name: "shop",
	},
	UID: "1",
}

// rendered is an object as a package renders it.
func rendered(policy program.Policy) program.Object {
	return program.Object{
		Name:     "settings",
		Identity: cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Name: "shop"},
		Policy:   policy,
		Manifest: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shop"},
			"data": map[string]any{"size": "1"},
		},
	}
}

func stamp(t *testing.T, o program.Object) ownership.Desired {
	t.Helper()
	d, err := ownership.Stamp(owner, "config", o, ownership.StampOptions{Scope: cluster.Namespaced})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStampMarksAnObject(t *testing.T) {
	t.Parallel()
	o := rendered(program.Policy{})
	d := stamp(t, o)
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"size": "1"},
		"metadata": map[string]any{
			"name": "shop", "namespace": "default",
			"labels": map[string]any{"operetta.dev/owner": owner.Label()},
			"annotations": map[string]any{
				"operetta.dev/owner": "Shop.example.com default/shop", "operetta.dev/owner-uid": "1", "operetta.dev/component": "config/settings", "operetta.dev/applied": d.Digest,
			},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "example.com/v1", "kind": "Shop", "name": "shop", "uid": "1", "controller": true, "blockOwnerDeletion": true,
			}},
		},
	}
	if diff := cmp.Diff(want, d.Manifest.Object); diff != "" {
		t.Errorf("stamped (-want +got):\n%s", diff)
	}
	if len(o.Manifest["metadata"].(map[string]any)) != 1 {
		t.Error("the rendering was changed; it may be shared")
	}
	orphan := stamp(t, rendered(program.Policy{Delete: "orphan"}))
	if len(orphan.Manifest.GetOwnerReferences()) != 0 {
		t.Error("an orphan outlives its owner, and garbage collection would not let it")
	}
}

// reach returns what a text says.
func reach(t *testing.T, text string) program.Reach {
	t.Helper()
	r, err := program.ParseReach(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStampRefusesWhatReachesBeyondTheOwner(t *testing.T) {
	t.Parallel()
	elsewhere := rendered(program.Policy{})
	elsewhere.Manifest["metadata"] = map[string]any{"name": "shop", "namespace": "kube-system"}
	elsewhere.Identity.Namespace = "kube-system"
	wide := owner
	wide.Namespace = ""
	there := ownership.StampOptions{Scope: cluster.Namespaced, Reach: reach(t, "ConfigMap=kube-system")}
	rows := map[string]struct {
		reason string
		owner  ownership.Owner
		object program.Object
		at     ownership.StampOptions
		want   string
		refs   int
	}{
		"another namespace":             {"J3", owner, elsewhere, ownership.StampOptions{Scope: cluster.Namespaced}, "it is in namespace kube-system, and its owner is in namespace default", 0},
		"no namespace":                  {"J3", owner, rendered(program.Policy{}), ownership.StampOptions{Scope: cluster.ClusterScoped}, "ConfigMap is cluster-scoped, and its owner is in namespace default", 0},
		"another namespace, allowed":    {"the package says so; garbage collection does not reach there", owner, elsewhere, there, "", 0},
		"a third namespace":             {"it says another one", owner, elsewhere, ownership.StampOptions{Scope: cluster.Namespaced, Reach: reach(t, "ConfigMap=kube-public")}, `reach: ConfigMap: namespaces: "kube-system": true`, 0},
		"another kind":                  {"it says another one", owner, elsewhere, ownership.StampOptions{Scope: cluster.Namespaced, Reach: reach(t, "ConfigMap.example.com=* Secret=kube-system")}, "it is in namespace kube-system", 0},
		"what is only read":             {"reading is not owning", owner, elsewhere, ownership.StampOptions{Scope: cluster.Namespaced, Reach: reach(t, "read:ConfigMap=kube-system")}, "it is in namespace kube-system", 0},
		"no namespace, allowed":         {"the package says so", owner, rendered(program.Policy{}), ownership.StampOptions{Scope: cluster.ClusterScoped, Reach: reach(t, "ConfigMap")}, "", 0},
		"the owner has no namespace":    {"garbage collection reaches everywhere", wide, elsewhere, ownership.StampOptions{Scope: cluster.Namespaced}, "", 1},
		"neither of them has":           {"both are cluster-scoped", wide, rendered(program.Policy{}), ownership.StampOptions{Scope: cluster.ClusterScoped}, "", 1},
		"its own namespace, as written": {"the usual case", owner, rendered(program.Policy{}), ownership.StampOptions{Scope: cluster.Namespaced}, "", 1},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := ownership.Stamp(row.owner, "config", row.object, row.at)
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Fatalf("%s: got error %v, want %q", row.reason, err, row.want)
			}
			if err == nil && len(d.Manifest.GetOwnerReferences()) != row.refs {
				t.Errorf("%s: got %d references, want %d", row.reason, len(d.Manifest.GetOwnerReferences()), row.refs)
			}
		})
	}
}

// controlledBy makes an object somebody's.
func controlledBy(kind, name, uid string) func(*unstructured.Unstructured) {
	yes := true
	return func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}})
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	deleted := func(u *unstructured.Unstructured) {
		now := metav1.Now()
		u.SetDeletionTimestamp(&now)
	}
	annotated := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			a := u.GetAnnotations()
			a[key] = value
			u.SetAnnotations(a)
		}
	}
	rows := map[string]struct {
		reason string
		policy program.Policy
		edit   []func(*unstructured.Unstructured)
		want   ownership.Action
	}{
		"in sync":               {reason: "it costs no request", want: ownership.Action{Decision: ownership.Keep}},
		"another manifest":      {reason: "the spec changed", edit: []func(*unstructured.Unstructured){annotated(ownership.AppliedAnnotation, "old")}, want: ownership.Action{Decision: ownership.Update}},
		"without its digest":    {reason: "E7: nobody but us has one", edit: []func(*unstructured.Unstructured){func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }}, want: ownership.Action{Decision: ownership.Repair, Reason: "its annotations were removed by another client"}},
		"created and let be":    {reason: "createOnly", policy: program.Policy{Apply: "createOnly"}, edit: []func(*unstructured.Unstructured){annotated(ownership.AppliedAnnotation, "old")}, want: ownership.Action{Decision: ownership.Keep}},
		"being deleted":         {reason: "it has to go before it can come back", edit: []func(*unstructured.Unstructured){deleted}, want: ownership.Action{Decision: ownership.WaitForDeletion, Reason: "it is still being deleted"}},
		"somebody else's":       {reason: "E6", edit: []func(*unstructured.Unstructured){controlledBy("Other", "o", "9")}, want: ownership.Action{Decision: ownership.Refuse, Reason: "it exists already and belongs to Other o; policy.settings.adopt: true takes it over"}},
		"another Shop's":        {reason: "E6", edit: []func(*unstructured.Unstructured){controlledBy("Shop", "other", "9")}, want: ownership.Action{Decision: ownership.Refuse, Reason: "it exists already and belongs to Shop other; policy.settings.adopt: true takes it over"}},
		"taken over":            {reason: "the package says so", policy: program.Policy{Adopt: true}, edit: []func(*unstructured.Unstructured){controlledBy("Other", "o", "9")}, want: ownership.Action{Decision: ownership.Adopt, Reason: "taken over from Other o"}},
		"a predecessor's":       {reason: "B2: same name, other UID", edit: []func(*unstructured.Unstructured){controlledBy("Shop", "shop", "0")}, want: ownership.Action{Decision: ownership.WaitForDeletion, Reason: "it belongs to a deleted Shop of the same name and is about to be garbage-collected"}},
		"marked by another":     {reason: "E6: objects elsewhere have no reference", edit: []func(*unstructured.Unstructured){func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }, annotated(ownership.OwnerAnnotation, "Shop.example.com default/other")}, want: ownership.Action{Decision: ownership.Refuse, Reason: "it exists already and belongs to Shop.example.com default/other; policy.settings.adopt: true takes it over"}},
		"without its reference": {reason: "E7: the mark says that it is ours", edit: []func(*unstructured.Unstructured){func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }}, want: ownership.Action{Decision: ownership.Repair, Reason: "metadata.ownerReferences was changed by another client"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := stamp(t, rendered(row.policy))
			m := memory.New()
			live, err := m.Apply(t.Context(), d.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			for _, edit := range row.edit {
				edit(live)
				if live.GetDeletionTimestamp() == nil {
					if live, err = m.Put("somebody", live); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff(row.want, ownership.Decide(d, live, owner)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
	if got := ownership.Decide(stamp(t, rendered(program.Policy{})), nil, owner); got.Decision != ownership.Create {
		t.Errorf("nothing is there: got %v", got)
	}
}

func TestOwnersAreParsedBack(t *testing.T) {
	t.Parallel()
	for _, o := range []ownership.Owner{owner, {Ref: cluster.Ref{GroupVersionKind: owner.GroupVersionKind, Name: "cluster-wide"}}} {
		kind, key, ok := ownership.ParseOwner(o.String())
		if !ok || kind != o.GroupKind() || key.Name != o.Name || key.Namespace != o.Namespace {
			t.Errorf("%s was parsed as %v %v %v", o, kind, key, ok)
		}
	}
	if _, _, ok := ownership.ParseOwner("nonsense"); ok {
		t.Error("nonsense was parsed")
	}
	if n := len(owner.Label()); n > 63 {
		t.Errorf("the label's value has %d characters, and 63 are allowed", n)
	}
}

func TestInventory(t *testing.T) {
	t.Parallel()
	entry := func(object string) ownership.Entry {
		return ownership.Entry{Object: object, APIVersion: "v1", Kind: "ConfigMap", Name: object}
	}
	inv := ownership.Inventory{}.With("a", nil, []ownership.Entry{entry("x"), entry("y")}).With("b", []string{"a"}, []ownership.Entry{entry("z")})
	if inv.Len() != 3 || !inv.NeedsTeardown() {
		t.Errorf("got %d objects, order %v", inv.Len(), inv.NeedsTeardown())
	}
	all := func(string) bool { return true }
	if diff := cmp.Diff([]string{"b"}, inv.DeletionOrder().Blocked("a", all)); diff != "" {
		t.Errorf("a waits for its dependents (-want +got):\n%s", diff)
	}
	moved := inv.With("b", []string{"a"}, []ownership.Entry{entry("z"), entry("x")})
	_, component, _ := moved.Find(entry("x").Ref("default"), "default")
	if component != "b" || moved.Len() != 3 {
		t.Errorf("x moved to %q, %d objects in all", component, moved.Len())
	}
	if left := inv.Without("b", entry("z")); left.Len() != 2 || len(left) != 1 {
		t.Errorf("an empty component stays: %v", left)
	}
	b, err := json.Marshal(inv)
	if err != nil {
		t.Fatal(err)
	}
	var back ownership.Inventory
	if err := json.Unmarshal(b, &back); err != nil || !inv.Equal(back) {
		t.Errorf("it does not survive its encoding: %v %s", err, b)
	}
}

func TestALargeInventoryFitsIntoAStatus(t *testing.T) {
	t.Parallel()
	var entries []ownership.Entry
	for i := range 1000 {
		entries = append(entries, ownership.Entry{
			Object: fmt.Sprintf("object-%d", i), APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy",
			Name: fmt.Sprintf("a-name-of-forty-characters-and-more-%04d", i), Digest: "0123456789abcdef", UIDPrefix: "01234567",
		})
	}
	b, err := json.Marshal(ownership.Inventory{}.With("all", nil, entries))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("1,000 objects take %d bytes", len(b))
	if len(b) > 256<<10 {
		t.Errorf("I2: 1,000 objects take %d bytes, more than 256 KiB", len(b))
	}
}
