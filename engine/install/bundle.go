package install

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Bundle is a release of the operator for the Operator Lifecycle Manager (OLM), in the format registry+v1:
// https://olm.operatorframework.io/docs/tasks/creating-operator-bundle.
type Bundle struct {
	// Name is the name of the operator in a catalog, and Version its version, such as 0.1.0.
	Name, Version string
	// Channel is where a catalog offers it.
	Channel string
	// Examples are custom resources that a console offers to begin with.
	Examples []map[string]any

	// rules are those of all namespaces, and inNamespace those of some: that of the operator, and those that it serves.
	rules       []any
	inNamespace map[string][]any
	// webhooks are those that OLM makes, and converted the definitions whose versions are converted by one.
	webhooks    []any
	converted   []string
	deployments []map[string]any
	// owned are the versions of definitions, and kinds what they define.
	owned []map[string]any
	kinds []string
	// others are the objects that OLM applies as they are, and policies those that it does not know.
	others, policies []*unstructured.Unstructured
}

// The folders and files of a bundle.
const (
	// BundleManifests is the folder with what OLM installs.
	BundleManifests = "manifests"
	annotationsFile = "metadata/annotations.yaml"
	bundleImageFile = "bundle.Dockerfile"
	// BundlePolicies is the file with what OLM does not install.
	BundlePolicies = "policies.yaml"
)

// minKubeVersion is the first version of Kubernetes that has what is installed.
const minKubeVersion = "1.30.0"

// Files returns the files of the bundle by their names, made of all that is installed with some options. It errors if OLM
// cannot install something of it. text prints an object as YAML.
func (b Bundle) Files(all []*unstructured.Unstructured, o Options, text func(map[string]any) (string, error)) (map[string]string, error) {
	b.inNamespace = map[string][]any{}
	for _, u := range all {
		if err := b.add(u, all, o); err != nil {
			return nil, err
		}
	}
	if err := b.addConversion(o); err != nil {
		return nil, err
	}
	out := map[string]string{annotationsFile: b.annotations(o), bundleImageFile: b.image(o)}
	version, err := b.clusterServiceVersion(o)
	if err != nil {
		return nil, err
	}
	if out[BundleManifests+"/"+b.Name+".clusterserviceversion.yaml"], err = text(version); err != nil {
		return nil, err
	}
	for _, u := range b.others {
		name := BundleManifests + "/" + fileName(u)
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("bundle: two objects would have the file %s", name)
		}
		if out[name], err = text(u.Object); err != nil {
			return nil, err
		}
	}
	if !o.Namespaces.All() {
		if out[BundleGroup], err = text(b.group(o)); err != nil {
			return nil, err
		}
	}
	for _, u := range b.policies {
		document, err := text(u.Object)
		if err != nil {
			return nil, err
		}
		out[BundlePolicies] += separator + document
	}
	return out, nil
}

// add adds an object to the part of the bundle that it belongs to.
func (b *Bundle) add(u *unstructured.Unstructured, all []*unstructured.Unstructured, o Options) error {
	switch u.GetKind() {
	case "Namespace", "ServiceAccount", "ClusterRole", "Role":
		// OLM makes the namespace and the service account, and roles from the rules that their bindings lead to.
		return nil
	case "ClusterRoleBinding", "RoleBinding":
		return b.addRules(u, all, o)
	case "Deployment":
		b.deployments = append(b.deployments, map[string]any{"name": u.GetName(), "label": stringMap(u.GetLabels()), "spec": u.Object["spec"]})
		return nil
	case "CustomResourceDefinition":
		b.others = append(b.others, u)
		return b.own(u)
	case "ValidatingWebhookConfiguration":
		return b.addWebhooks(u, olmValidating, o)
	case "MutatingWebhookConfiguration":
		return b.addWebhooks(u, olmMutating, o)
	case "ConfigMap", "Service", "PodDisruptionBudget", "NetworkPolicy":
		if u.GetNamespace() != o.OperatorNamespace {
			return fmt.Errorf("bundle: %s %s is for namespace %s, and OLM installs into the namespace of the operator alone", u.GetKind(), u.GetName(), u.GetNamespace())
		}
		u = u.DeepCopy()
		u.SetNamespace("")
		b.others = append(b.others, u)
		return nil
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		b.policies = append(b.policies, u)
		return nil
	}
	return fmt.Errorf("bundle: OLM does not install %s %s", u.GetKind(), u.GetName())
}

// addRules adds the rules that the operator has by a binding.
func (b *Bundle) addRules(binding *unstructured.Unstructured, all []*unstructured.Unstructured, o Options) error {
	if isOfPackageEvents(binding, o) {
		return nil // OLM makes no Role there, and the operator does without events about Packages
	}
	if !mayBind(binding, o) {
		return fmt.Errorf("bundle: RoleBinding %s is for namespace %s, and OLM gives rights in all namespaces, or in that of the operator and those that it serves", binding.GetName(), binding.GetNamespace())
	}
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	at := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == kind && u.GetName() == name && (kind == "ClusterRole" || u.GetNamespace() == binding.GetNamespace())
	})
	if at < 0 {
		return fmt.Errorf("bundle: %s %s binds %s %s, which is not part of it", binding.GetKind(), binding.GetName(), kind, name)
	}
	rules, _, _ := unstructured.NestedSlice(all[at].Object, "rules")
	if binding.GetNamespace() == "" {
		b.rules = append(b.rules, rules...)
	} else {
		b.inNamespace[binding.GetNamespace()] = append(b.inNamespace[binding.GetNamespace()], rules...)
	}
	return nil
}

// own notes the versions of a definition that the operator serves.
func (b *Bundle) own(u *unstructured.Unstructured) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd); err != nil {
		return fmt.Errorf("bundle: definition %s: %w", u.GetName(), err)
	}
	b.kinds = append(b.kinds, crd.Spec.Names.Kind)
	b.noteConversion(crd)
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		about := crd.Spec.Names.Kind + " in version " + v.Name
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil && v.Schema.OpenAPIV3Schema.Description != "" {
			about = strings.Join(strings.Fields(v.Schema.OpenAPIV3Schema.Description), " ")
		}
		b.owned = append(b.owned, map[string]any{
			"name": crd.Name, "kind": crd.Spec.Names.Kind, "version": v.Name, "displayName": crd.Spec.Names.Kind, "description": about,
		})
	}
	return nil
}

// clusterServiceVersion returns the object that tells OLM how the operator is installed.
func (b *Bundle) clusterServiceVersion(o Options) (map[string]any, error) {
	examples, err := json.MarshalIndent(append([]map[string]any{}, b.Examples...), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("bundle: examples: %w", err)
	}
	strategy, err := b.strategy(o)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{
		"displayName": b.Name, "description": b.description(), "version": b.Version, "maturity": "alpha", "minKubeVersion": minKubeVersion,
		"provider": map[string]any{"name": b.Name}, "installModes": modes(o),
		"install":                   map[string]any{"strategy": "deployment", "spec": strategy},
		"customresourcedefinitions": map[string]any{"owned": b.owned},
	}
	if len(b.webhooks) > 0 {
		spec["webhookdefinitions"] = b.webhooks
	}
	return map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{
			"name":      b.Name + ".v" + b.Version,
			"namespace": "placeholder", // by convention: OLM puts it into the namespace of a subscription
			"annotations": map[string]any{
				"alm-examples": string(examples), "capabilities": "Deep Insights",
			},
		},
		"spec": spec,
	}, nil
}

// description says in Markdown what the operator is for.
func (b *Bundle) description() string {
	return "An operator of packages in CUE. Its kinds are " + strings.Join(slices.Sorted(slices.Values(b.kinds)), ", ") + ".\n\n" +
		"OLM installs no ValidatingAdmissionPolicies. Those that protect the status of custom resources and the rights behind Patches are in the file " +
		BundlePolicies + " beside the bundle; apply it first.\n"
}

// strategy is the Deployment with the rights of its service account.
func (b *Bundle) strategy(o Options) (map[string]any, error) {
	inNamespaces, err := b.permissions(o)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"deployments": b.deployments}
	for field, rules := range map[string][]any{"clusterPermissions": b.rules, "permissions": inNamespaces} {
		if len(rules) > 0 {
			out[field] = []any{map[string]any{"serviceAccountName": o.ServiceAccount, "rules": rules}}
		}
	}
	return out, nil
}

// labels are what a catalog knows of the bundle, in order.
func (b *Bundle) labels(o Options) [][2]string {
	return [][2]string{
		{"operators.operatorframework.io.bundle.mediatype.v1", "registry+v1"},
		{"operators.operatorframework.io.bundle.manifests.v1", BundleManifests + "/"},
		{"operators.operatorframework.io.bundle.metadata.v1", "metadata/"},
		{"operators.operatorframework.io.bundle.package.v1", b.Name},
		{"operators.operatorframework.io.bundle.channels.v1", b.Channel},
		{"operators.operatorframework.io.bundle.channel.default.v1", b.Channel},
		{"operatorframework.io/suggested-namespace", o.OperatorNamespace},
	}
}

// annotations returns the metadata of the bundle.
func (b *Bundle) annotations(o Options) string {
	var out strings.Builder
	out.WriteString("annotations:\n")
	for _, l := range b.labels(o) {
		fmt.Fprintf(&out, "  %s: %q\n", l[0], l[1])
	}
	return out.String()
}

// image returns how the image of the bundle is built.
func (b *Bundle) image(o Options) string {
	var out strings.Builder
	out.WriteString("FROM scratch\n")
	for _, l := range b.labels(o) {
		fmt.Fprintf(&out, "LABEL %s=%q\n", l[0], l[1])
	}
	out.WriteString("COPY manifests /manifests/\nCOPY metadata /metadata/\n")
	return out.String()
}

// fileName returns the name of the file of an object.
func fileName(u *unstructured.Unstructured) string {
	return strings.ReplaceAll(u.GetName(), ":", "-") + "." + strings.ToLower(u.GetKind()) + ".yaml"
}

func stringMap(m map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}
