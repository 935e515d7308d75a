package attack

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/test/harness"
)

// withOwnerMarks adds the owner labels of a resource to an object, as far as an attacker knows them who
// may not read the resource.
func withOwnerMarks(u *unstructured.Unstructured, p *harness.TestPackage, namespace, name string, marks map[string]string) *unstructured.Unstructured {
	owner := ownership.Owner{Ref: object.Ref{GroupVersionKind: schema.GroupVersionKind{Group: p.Name + ".example.com", Version: "v1", Kind: "Thing"}, Namespace: namespace, Name: name}}
	ownership.Mark(u, owner)
	annotations := u.GetAnnotations()
	delete(annotations, ownership.OwnerUIDAnnotation)
	maps.Copy(annotations, marks)
	u.SetAnnotations(annotations)
	return u
}

// badMetadata are forged labels and annotations, most of which are invalid in an inventory.
var badMetadata = []map[string]string{
	{ownership.ComponentAnnotation: "/"},
	{ownership.ComponentAnnotation: "greeting/x", ownership.AfterAnnotation: "config,availability,greeting"},
	{ownership.ComponentAnnotation: strings.Repeat("a", 5000) + "/x"},
	{ownership.ComponentAnnotation: "greeting/map", ownership.OwnerUIDAnnotation: "00000000-0000-0000-0000-000000000000"},
}

// TestAttackMarksOfOthersHarmNobody: carol creates ConfigMaps in her own namespace, and another user,
// who may not create resources, does so in the namespace of bob's resource. Their owner labels name
// bob's resource, and their finalizers stay forever.
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
			s := harness.NewEnv(t)
			p := harness.NewTestPackage(t, "poison"+strings.NewReplacer(" ", "", "'", "").Replace(name), helloBody+row.reach)
			o := s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
			bobs := s.OtherNamespace()
			hers := s.Namespace
			if row.near {
				hers = bobs
			}
			carol := s.Tenant("carol", hers, configMaps())
			bob := s.Tenant("bob", bobs, things(p))
			o.Stop()
			var all []*unstructured.Unstructured
			for i, marks := range badMetadata {
				u := harness.Object("v1", "ConfigMap", hers, fmt.Sprintf("poison-%d", i))
				u.SetFinalizers([]string{"example.com/evil"})
				all = append(all, carol.Create(withOwnerMarks(u, p, bobs, "shop", marks)))
			}
			t.Cleanup(func() { removeFinalizers(t, all) })
			// The resource was changed before the operator first read it, and may have lost its status.
			cr := bob.Create(inNamespace(p.Thing(s, "shop", nil), bobs))
			if err := bob.Patch(cr, harness.Spec(map[string]any{"text": "changed"})); err != nil {
				t.Fatal(err)
			}
			s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
			got := s.ExpectResourceReady(cr)
			if text := string(harness.Encode(t, got.Object["status"])); strings.Contains(text, "poison-") {
				t.Errorf("the status knows of them: %s", text)
			}
			if row.told {
				t.Log(s.Kubectl("get", "events", "-n", bobs, "-o", "jsonpath={range .items[?(@.reason==\"MarksIgnored\")]}{.message}{\"\\n\"}{end}"))
			}
			// The documented remedy does not break the resource again.
			if err := bob.PatchStatus(cr, map[string]any{"status": map[string]any{"inventory": nil}}); err != nil {
				t.Fatal(err)
			}
			s.ExpectObject(cr, "to have an inventory again", func(u *unstructured.Unstructured) error {
				if list, _ := harness.Field(u, "status", "inventory").([]any); len(list) != 1 {
					return fmt.Errorf("it has %v", list)
				}
				return nil
			})
			s.ExpectResourceReady(cr)
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

// removeFinalizers removes the finalizers that would keep a namespace from being deleted.
func removeFinalizers(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, u := range objects {
		u.SetManagedFields(nil)
		_, _ = harness.Kubectl(t.Context(), "patch", strings.ToLower(u.GetKind()), u.GetName(), "-n", u.GetNamespace(), "--type=merge", `-p={"metadata":{"finalizers":null}}`)
	}
}
