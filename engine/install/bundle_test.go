package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/object"
	"operetta.dev/engine/rbac"
)

// What is left out of a bundle is missing in the cluster.
func TestABundleLeavesOutNothingInSilence(t *testing.T) {
	t.Parallel()
	o := Options{Options: rbac.Options{OperatorNamespace: "home", ServiceAccount: "op"}}
	object := func(kind, namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	binding := object("RoleBinding", "home", "b")
	binding.Object["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "edit"}
	for name, tc := range map[string]struct {
		reason string
		all    []*unstructured.Unstructured
		want   string
	}{
		"Unknown":         {"OLM would ignore it", []*unstructured.Unstructured{object("StatefulSet", "home", "s")}, "does not install StatefulSet s"},
		"Elsewhere":       {"OLM would put it into the namespace of the operator", []*unstructured.Unstructured{object("ConfigMap", "away", "c")}, "ConfigMap c is for namespace away"},
		"RightsElsewhere": {"OLM would give the right in another namespace", []*unstructured.Unstructured{object("RoleBinding", "away", "b")}, "RoleBinding b is for namespace away"},
		"Bound":           {"its rules are not known", []*unstructured.Unstructured{binding}, "binds ClusterRole edit, which is not part of it"},
		"Twice":           {"one would overwrite the other", []*unstructured.Unstructured{object("ConfigMap", "home", "a:b"), object("ConfigMap", "home", "a-b")}, "two objects would have the file manifests/a-b.configmap.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Bundle{Name: "op", Version: "0.1.0"}.Files(tc.all, o, func(m map[string]any) (string, error) { return fmt.Sprint(m), nil })
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// OLM gives the same rights in all namespaces of an OperatorGroup.
func TestABundleGivesNoNamespaceMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	roleIn := func(namespace, resource string) []*unstructured.Unstructured {
		role, binding := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		for u, kind := range map[*unstructured.Unstructured]string{role: "Role", binding: "RoleBinding"} {
			u.SetKind(kind)
			u.SetName("op")
			u.SetNamespace(namespace)
		}
		role.Object["rules"] = []any{map[string]any{"resources": []any{resource}}}
		binding.Object["roleRef"] = map[string]any{"kind": "Role", "name": "op"}
		return []*unstructured.Unstructured{role, binding}
	}
	o := Options{Options: rbac.Options{OperatorNamespace: "home", ServiceAccount: "op", Namespaces: object.Namespaces{"a", "b", "home"}, PackageObjects: true}}
	for name, tc := range map[string]struct {
		reason string
		all    []*unstructured.Unstructured
		want   string
	}{
		"Same":        {"the operator needs the same in both", slices.Concat(roleIn("a", "secrets"), roleIn("b", "secrets")), ""},
		"Events":      {"OLM makes no Role in the namespace default, and events about Packages are not needed", slices.Concat(roleIn("default", "events"), roleIn("a", "secrets"), roleIn("b", "secrets")), ""},
		"Own":         {"the Lease is in the operator's namespace alone", slices.Concat(roleIn("home", "leases"), roleIn("a", "secrets"), roleIn("b", "secrets")), ""},
		"Other":       {"it would have both in each", slices.Concat(roleIn("a", "secrets"), roleIn("b", "services")), "other permissions in namespace b"},
		"NoneInLast":  {"it would have there what it does not need", roleIn("a", "secrets"), "other permissions in namespace b"},
		"NoneInFirst": {"the order of names decides nothing", roleIn("b", "secrets"), "other permissions in namespace b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Bundle{Name: "op", Version: "0.1.0"}.Files(tc.all, o, func(m map[string]any) (string, error) { return fmt.Sprint(m), nil })
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
