package attack

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/ownership"
	"operetta.dev/test/harness"
)

// mark makes an object say that it is of a resource, as far as anybody knows who has not
// read it.
func mark(u *unstructured.Unstructured, p *harness.Small, namespace, name string, marks map[string]string) *unstructured.Unstructured {
	owner := ownership.Owner{GroupVersionKind: schema.GroupVersionKind{Group: p.Name + ".example.com", Version: "v1", Kind: "Thing"}, Namespace: namespace, Name: name}
	ownership.Mark(u, owner)
	annotations := u.GetAnnotations()
	delete(annotations, ownership.UIDMark)
	maps.Copy(annotations, marks)
	u.SetAnnotations(annotations)
	return u
}

// poison are marks that no inventory can have, and some that one can.
var poison = []map[string]string{
	{ownership.ComponentMark: "/"},
	{ownership.ComponentMark: "greeting/x", ownership.AfterMark: "config,availability,greeting"},
	{ownership.ComponentMark: strings.Repeat("a", 5000) + "/x"},
	{ownership.ComponentMark: "greeting/map", ownership.UIDMark: "00000000-0000-0000-0000-000000000000"},
}

// TestAttackMarksOfOthersHarmNobody: carol makes ConfigMaps in a namespace of hers, and in
// that of bob's resource somebody else does who may make no resources. Their marks name
// bob's resource, and their finalizers stay for ever.
func TestAttackMarksOfOthersHarmNobody(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reach string
		near  bool
		told  bool
	}{
		"elsewhere":          {"", false, false},
		"elsewhere in reach": {"reach: ConfigMap: namespaces: \"*\": true\n", false, true},
		"in bob's namespace": {"", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewSite(t)
			p := harness.NewSmall(t, "poison"+strings.NewReplacer(" ", "", "'", "").Replace(name), hello+row.reach)
			o := s.Operate(p.Dir, harness.Everywhere, harness.Alone)
			bobs := s.Elsewhere()
			hers := s.Namespace
			if row.near {
				hers = bobs
			}
			carol := s.Tenant("carol", hers, configMaps())
			bob := s.Tenant("bob", bobs, things(p))
			o.Stop()
			var all []*unstructured.Unstructured
			for i, marks := range poison {
				u := harness.Object("v1", "ConfigMap", hers, fmt.Sprintf("poison-%d", i))
				u.SetFinalizers([]string{"example.com/evil"})
				all = append(all, carol.Create(mark(u, p, bobs, "shop", marks)))
			}
			t.Cleanup(func() { release(t, all) })
			// It was changed before the operator's first look, and may have lost its status.
			cr := bob.Create(elsewhere(p.Thing(s, "shop", nil), bobs))
			if err := bob.Patch(cr, harness.Spec(map[string]any{"text": "changed"})); err != nil {
				t.Fatal(err)
			}
			s.Operate(p.Dir, harness.Everywhere, harness.Alone)
			got := s.ExpectAllReady(cr)
			if text := string(harness.Encode(t, got.Object["status"])); strings.Contains(text, "poison-") {
				t.Errorf("the status knows of them: %s", text)
			}
			if row.told {
				t.Log(s.Kubectl("get", "events", "-n", bobs, "-o", "jsonpath={range .items[?(@.reason==\"MarksIgnored\")]}{.message}{\"\\n\"}{end}"))
			}
			// Nor does the documented remedy poison it again.
			if err := bob.PatchStatus(cr, map[string]any{"status": map[string]any{"inventory": nil}}); err != nil {
				t.Fatal(err)
			}
			s.ExpectThat(cr, "to have an inventory again", func(u *unstructured.Unstructured) error {
				if list, _ := harness.Field(u, "status", "inventory").([]any); len(list) != 1 {
					return fmt.Errorf("it has %v", list)
				}
				return nil
			})
			s.ExpectAllReady(cr)
			if err := bob.Client.Delete(t.Context(), cr.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			s.ExpectGone(cr)
			expectUnharmed(s, "with bob's resource", all...)
			if !row.near { // what carol has there keeps the namespace by itself
				namespace := harness.Object("v1", "Namespace", "", bobs)
				s.Delete(namespace)
				s.ExpectGone(namespace)
			}
		})
	}
}

// release takes the finalizers away that would keep a namespace.
func release(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, u := range objects {
		u.SetManagedFields(nil)
		_, _ = harness.Kubectl(t.Context(), "patch", strings.ToLower(u.GetKind()), u.GetName(), "-n", u.GetNamespace(), "--type=merge", `-p={"metadata":{"finalizers":null}}`)
	}
}
