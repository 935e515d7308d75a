package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Resource is a kind with its plural name, which URLs and roles use.
type Resource struct {
	schema.GroupKind
	Plural string
}

// name returns the resource in the form that roles use.
func (r Resource) name() string {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}.String()
}

// key returns the kind in the form that the policy's expressions use.
func (r Resource) key() string { return r.Group + "/" + r.Kind }

// builtIn are the namespaced built-in kinds that a package may render.
var builtIn = map[string][]string{
	"": {
		"ConfigMap", "Endpoints", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController", "ResourceQuota",
		"Secret", "Service", "ServiceAccount",
	},
	"apps":                      {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"autoscaling":               {"HorizontalPodAutoscaler"},
	"batch":                     {"CronJob", "Job"},
	"coordination.k8s.io":       {"Lease"},
	"discovery.k8s.io":          {"EndpointSlice"},
	"networking.k8s.io":         {"Ingress", "NetworkPolicy"},
	"policy":                    {"PodDisruptionBudget"},
	"rbac.authorization.k8s.io": {"Role", "RoleBinding"},
	"resource.k8s.io":           {"ResourceClaim", "ResourceClaimTemplate"},
	"storage.k8s.io":            {"CSIStorageCapacity"},
}

// Resources returns the kinds that a policy knows: the built-in ones, the known ones, and
// others, whose plural is guessed.
func Resources(known []Resource, others []schema.GroupKind) []Resource {
	byKind := map[schema.GroupKind]Resource{}
	addGuessed := func(kind schema.GroupKind) {
		if _, there := byKind[kind]; !there {
			plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion("v1"))
			byKind[kind] = Resource{GroupKind: kind, Plural: plural.Resource}
		}
	}
	for _, r := range known {
		byKind[r.GroupKind] = r
	}
	for group, kinds := range builtIn {
		for _, kind := range kinds {
			addGuessed(schema.GroupKind{Group: group, Kind: kind})
		}
	}
	for _, kind := range others {
		addGuessed(kind)
	}
	return slices.SortedFunc(maps.Values(byKind), func(a, b Resource) int { return strings.Compare(a.key(), b.key()) })
}

// namedKinds is the CEL list of the kinds that a Patch names, with "" for a change without kind.
const namedKinds = `object.spec.patches.map(p, !has(p.apiVersion) || !has(p.kind) || p.apiVersion.split("/").size() > 2 ? "" :
  (p.apiVersion.contains("/") ? p.apiVersion.split("/")[0] : "") + "/" + p.kind)`

// target is the CEL key of the kind that a Patch is for.
const target = `(object.spec.target.apiVersion.contains("/") ? object.spec.target.apiVersion.split("/")[0] : "") + "/" + object.spec.target.kind`

// of limits a rule about Patches to those for resources of one kind, unless it is nil. An operator of other
// kinds has a policy of its own.
func (r rule) of(kind *Resource) rule {
	if kind == nil {
		return r
	}
	r.name += "." + kind.name()
	r.matchConditions = append(r.matchConditions, admissionregistrationv1.MatchCondition{Name: "for-its-kind", Expression: target + " == " + strconv.Quote(kind.key())})
	return r
}

// PatchStatus returns a policy by which only the operator may write a field of the status of the Patches for
// resources of a kind. Without a kind it is for all Patches, and lets others write that may be the operators
// of other kinds: who may write the status of Patches in all namespaces, and service accounts that may in the
// namespace, as an operator of one namespace.
func PatchStatus(patches schema.GroupResource, fields []string, kind *Resource, o Options) []any {
	r := o.status(patches, fields, nil)
	if kind == nil {
		status := fmt.Sprintf(`authorizer.group(%q).resource(%q).subresource("status")`, patches.Group, patches.Resource)
		r.matchConditions = append(r.matchConditions, admissionregistrationv1.MatchCondition{
			Name: "no-other-operator",
			Expression: fmt.Sprintf(`!(request.userInfo.username.startsWith("system:serviceaccount:") && %s.namespace(request.namespace).check("patch").allowed() ||
  %s.check("patch").allowed())`, status, status),
		})
	}
	return o.objects(r.of(kind))
}

// Patches returns a policy by which the author of a Patch for a resource of a kind, or of any kind if it is
// nil, needs the permission to update the kinds that it changes. The engine checks that the object has the
// kind that the Patch names.
func Patches(patches schema.GroupResource, kind *Resource, resources []Resource, o Options) []any {
	forbidden := metav1.StatusReasonForbidden
	keys := make([]string, len(resources))
	for i, r := range resources {
		keys[i] = r.key()
	}
	validations := []admissionregistrationv1.Validation{
		{
			Expression: `variables.kinds.all(k, k != "")`,
			Message:    "set apiVersion and kind of each object in spec.patches: a Patch requires the permission to update that kind",
			Reason:     &forbidden,
		},
		{
			Expression:        "size(variables.unknown) == 0",
			MessageExpression: `"spec.patches has kinds that the policy does not know: " + variables.unknown.join(", ") + "; run operetta install with the packages that render them"`,
			Message:           "spec.patches has kinds that the policy does not know",
			Reason:            &forbidden,
		},
	}
	for _, r := range resources {
		// Each kind has its own validation: a call of the authorizer costs a third of the budget
		// of an expression.
		validations = append(validations, admissionregistrationv1.Validation{
			Expression: fmt.Sprintf("!(%q in variables.kinds) || authorizer.group(%q).resource(%q).namespace(request.namespace).check(\"update\").allowed()", r.key(), r.Group, r.Plural),
			Message:    fmt.Sprintf("patching a %s requires the permission to update %s in the namespace", r.Kind, r.name()),
			Reason:     &forbidden,
		})
	}
	return o.objects(rule{
		name:       "operetta-" + patches.String(),
		resource:   admissionregistrationv1.Rule{APIGroups: []string{patches.Group}, APIVersions: []string{"*"}, Resources: []string{patches.Resource}},
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		// A change of only the labels or finalizers of a Patch has no effect on other objects.
		matchConditions: []admissionregistrationv1.MatchCondition{{Name: "changes-the-spec", Expression: `request.operation == "CREATE" || object.spec != oldObject.spec`}},
		variables: []admissionregistrationv1.Variable{
			{Name: "kinds", Expression: namedKinds},
			{Name: "unknown", Expression: "variables.kinds.filter(k, k != \"\" && !(k in " + celList(keys) + "))"},
		},
		validations: validations,
	}.of(kind))
}
