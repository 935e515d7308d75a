package ownership_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/ownership"
)

// FuzzInventory decodes what anybody may have written into a status: what is accepted is
// the same when it is stored again, and can be acted upon.
func FuzzInventory(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[5]`, `[{"component":"a"}]`, `[{"component":"a"},{"component":"a"}]`, `[{"component":"/"}]`, `[{"component":"a","dependsOn":["a"]}]`,
		`[{"component":"a","dependsOn":["b"],"objects":[{"object":"o","apiVersion":"v1","kind":"Secret","namespace":"tenant-b","name":"victim","uid":"01234567"}]}]`,
		`[{"component":"a","objects":[{"object":"o","apiVersion":"v1","kind":"Namespace","name":"victim","clusterScoped":true,"orphan":true,"digest":"d"}]}]`,
		`[{"component":"a","objects":[{"object":"o","apiVersion":"batch/v1","kind":"Job","name":"j","content":"c","ended":"Succeeded","last":"{\"succeeded\":1,\"conditions\":[{\"type\":\"Complete\"}]}"}]}]`,
		`[{"component":"a","objects":[{"object":"o","apiVersion":"a/b/c","kind":"","name":"../x"}]}]`, `[{"component":"a\u001b[2J"}]`, `[{"later":true}]`,
		`[{"component":"a","dependsOn":["b"]},{"component":"b","dependsOn":["a"],"objects":[{"object":"o","apiVersion":"v1","kind":"ConfigMap","name":"x"}]}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var values []any
		if json.Unmarshal(text, &values) != nil {
			return
		}
		inv, err := ownership.Decode(values)
		if err != nil {
			return
		}
		if err := inv.Check(); err != nil {
			t.Fatalf("it was read, and may not be written: %v", err)
		}
		again, err := ownership.Decode(inv.Encode())
		if err != nil || !inv.Equal(again) {
			t.Fatalf("it is another one when it is stored again: %v\n%s", err, cmp.Diff(inv, again))
		}
		order := inv.DeletionOrder()
		for _, g := range inv {
			order.Blocked(g.Component, func(string) bool { return false })
			for _, e := range g.Objects {
				e.FinishedObject("default")
				if left := inv.Without(g.Component, e); left.Check() != nil {
					t.Fatalf("without %+v it cannot be stored: %v", e, left.Check())
				}
			}
		}
	})
}

// FuzzMarks rebuilds an inventory from the marks of two objects, which are proven to be the
// owner's: what comes of it can be stored, and has each object once at most.
func FuzzMarks(f *testing.F) {
	f.Add("config/settings", "", "web/deployment", "config", "0123", "shop", "default")
	f.Add("/", "", "web/x", "config,availability,web", "", "poison", "tenant-a")
	f.Add("a/b/c", ",", strings.Repeat("a", 300)+"/o", "a,a", "\x1b[2J", "..", "")
	f.Add("hooks.afterVerify.job/o", "b", "hooks.afterVerify.job/p", "hooks.afterVerify.job", "orphan", "a%b", "x")
	reach := reaching(f, "ConfigMap=*")
	f.Fuzz(func(t *testing.T, component, after, component2, after2, digest, name, namespace string) {
		far := owner
		far.Reach = reach
		objectWith := func(name, component, after string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			u.SetNamespace(namespace)
			u.SetName(name)
			u.SetUID(types.UID("01234567" + name))
			u.SetAnnotations(map[string]string{ownership.ComponentAnnotation: component, ownership.AfterAnnotation: after, ownership.AppliedAnnotation: digest, ownership.DeleteAnnotation: digest, ownership.OwnerUIDAnnotation: string(owner.UID)})
			return u
		}
		objects := []*unstructured.Unstructured{objectWith(name, component, after), objectWith(name+"2", component2, after2), objectWith(name, component2, after)}
		inv, skipped := ownership.Rebuild(far, objects)
		if _, err := ownership.Decode(inv.Encode()); err != nil {
			t.Fatalf("what was rebuilt cannot be read: %v\n%+v", err, inv)
		}
		if inv.Len()+len(skipped) > len(objects) {
			t.Fatalf("%d objects became %d, and %d were skipped", len(objects), inv.Len(), len(skipped))
		}
	})
}
