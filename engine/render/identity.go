package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/program"
)

// Identity is what tells one object in a cluster from all others. The version is
// no part of it: apps/v1 and apps/v1beta1 are two views of one Deployment.
type Identity struct {
	schema.GroupKind
	Namespace, Name string
}

// IdentityOf returns the identity of a manifest. It is incomplete when the manifest
// lacks a kind or a name.
func IdentityOf(object map[string]any) Identity {
	meta := metadataOf(object)
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	id := Identity{GroupKind: groupKind(apiVersion, kind)}
	id.Namespace, _ = meta["namespace"].(string)
	id.Name, _ = meta["name"].(string)
	return id
}

// identityIn returns the identity of an object that is created in a namespace, and
// whether it is known. It often is before the object is complete.
func identityIn(namespace string, o program.Object) (Identity, bool) {
	id := Identity{
		GroupKind: groupKind(o.Identity.APIVersion, o.Identity.Kind),
		Namespace: o.Identity.Namespace,
		Name:      o.Identity.Name,
	}
	return id.in(namespace), o.Identity.Known()
}

// String returns the identity as in "Deployment.apps shop/web".
func (id Identity) String() string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s", id.GroupKind, name)
}

// in returns the identity with the namespace that it would be created in.
func (id Identity) in(namespace string) Identity {
	switch {
	case ClusterScoped(id.GroupKind):
		id.Namespace = ""
	case id.Namespace == "":
		id.Namespace = namespace
	}
	return id
}

func groupKind(apiVersion, kind string) schema.GroupKind {
	// What is not group/version is left in one piece: it can only match itself.
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupKind{Group: apiVersion, Kind: kind}
	}
	return schema.GroupKind{Group: gv.Group, Kind: kind}
}

// enterNamespace puts objects that do not name a namespace into one.
func enterNamespace(objects []program.Object, namespace string) {
	for _, o := range objects {
		meta := metadataOf(o.Manifest)
		if meta == nil {
			continue
		}
		if id := IdentityOf(o.Manifest).in(namespace); id.Namespace != "" {
			meta["namespace"] = id.Namespace
		}
	}
}

// ClusterScoped reports whether a kind of Kubernetes itself lives in no namespace.
func ClusterScoped(kind schema.GroupKind) bool { return clusterScoped[kind] }

// clusterScoped are the kinds of Kubernetes itself that live in no namespace. There
// is no cluster to ask; a kind that is not listed is taken for a namespaced one,
// which most are.
var clusterScoped = scopeTable(map[string][]string{
	"":                             {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"authentication.k8s.io":        {"SelfSubjectReview", "TokenReview"},
	"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
	"gateway.networking.k8s.io":    {"GatewayClass"},
	"snapshot.storage.k8s.io":      {"VolumeSnapshotClass", "VolumeSnapshotContent"},
	"policy.networking.k8s.io":     {"AdminNetworkPolicy", "BaselineAdminNetworkPolicy"},
	"cert-manager.io":              {"ClusterIssuer"},
	"apiextensions.crossplane.io":  {"CompositeResourceDefinition", "Composition"},
	"imagepolicy.k8s.io":           {"ImageReview"},
})

func scopeTable(kinds map[string][]string) map[schema.GroupKind]bool {
	table := map[schema.GroupKind]bool{}
	for group, names := range kinds {
		for _, kind := range names {
			table[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return table
}
