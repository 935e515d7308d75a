package install

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/object"
)

// BundleGroup is the file with the OperatorGroup that an operator of some namespaces needs: OLM gives it rights there.
const BundleGroup = "operatorgroup.yaml"

// modes says for which OperatorGroups the bundle is. The operator serves the namespaces that it was written for, whatever the group has, so a bundle
// is only for groups of that form.
func modes(o Options) []any {
	is := "AllNamespaces"
	switch only := o.Namespaces.Only(); {
	case o.Namespaces.All():
	case only == o.OperatorNamespace:
		is = "OwnNamespace"
	case only != "":
		is = "SingleNamespace"
	default:
		is = "MultiNamespace"
	}
	out := []any{}
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		out = append(out, map[string]any{"type": mode, "supported": mode == is})
	}
	return out
}

// group returns the OperatorGroup of an operator of some namespaces.
func (b *Bundle) group(o Options) map[string]any {
	return map[string]any{
		"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
		"metadata": map[string]any{"name": b.Name, "namespace": o.OperatorNamespace},
		"spec":     map[string]any{"targetNamespaces": object.Texts(o.Namespaces)},
	}
}

// permissions returns the rules of the operator in namespaces. OLM gives all of them in the operator's namespace and in each that it serves: it knows
// no difference. It errors if those of two served namespaces differ, as one would have more than it needs.
func (b *Bundle) permissions(o Options) ([]any, error) {
	served := slices.DeleteFunc(slices.Sorted(slices.Values(o.Namespaces)), func(name string) bool { return name == o.OperatorNamespace })
	out := slices.Clone(b.inNamespace[o.OperatorNamespace])
	first := ""
	for i, namespace := range served {
		text, err := json.Marshal(b.inNamespace[namespace]) // also those of one in which it needs none
		switch {
		case err != nil:
			return nil, fmt.Errorf("bundle: the rules in namespace %s: %w", namespace, err)
		case i == 0:
			first, out = string(text), append(out, b.inNamespace[namespace]...)
		case string(text) != first:
			return nil, fmt.Errorf("bundle: the operator needs other permissions in namespace %s than in others that it serves, and OLM gives it the same in all", namespace)
		}
	}
	return distinct(out)
}

// distinct returns rules without those that are there twice.
func distinct(rules []any) ([]any, error) {
	seen := map[string]bool{}
	var out []any
	for _, r := range rules {
		text, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("bundle: a rule: %w", err)
		}
		if !seen[string(text)] {
			seen[string(text)] = true
			out = append(out, r)
		}
	}
	return out, nil
}

// isOfPackageEvents reports whether a binding is for the events about Packages, which are in the namespace default, and that is none of those
// in which OLM gives rights.
func isOfPackageEvents(binding *unstructured.Unstructured, o Options) bool {
	return o.PackageObjects && binding.GetNamespace() == metav1.NamespaceDefault && !mayBind(binding, o)
}

// mayBind reports whether OLM makes a binding in a namespace.
func mayBind(binding *unstructured.Unstructured, o Options) bool {
	namespace := binding.GetNamespace()
	return namespace == "" || namespace == o.OperatorNamespace || !o.Namespaces.All() && o.Namespaces.Has(namespace)
}
