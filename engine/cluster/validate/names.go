package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nameRules are the rules of kinds whose names are not DNS subdomains.
var nameRules = map[schema.GroupKind]apivalidation.ValidateNameFunc{
	{Kind: "Namespace"}:                  apivalidation.NameIsDNSLabel,
	{Kind: "Service"}:                    apivalidation.NameIsDNSLabel,
	{Group: "apps", Kind: "StatefulSet"}: apivalidation.NameIsDNSLabel,
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:       pathSegment,
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                  pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        pathSegment,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: pathSegment,
}

// nameRule returns the rule for the names of a kind.
func nameRule(kind schema.GroupKind) apivalidation.ValidateNameFunc {
	if rule, ok := nameRules[kind]; ok {
		return rule
	}
	return apivalidation.NameIsDNSSubdomain
}

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// standardFinalizers are the finalizers that need no domain.
var standardFinalizers = []string{"kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}

// finalizers checks the finalizers of a built-in kind.
func finalizers(list []string) field.ErrorList {
	at := field.NewPath("metadata", "finalizers")
	var out field.ErrorList
	for i, f := range list {
		if !strings.Contains(f, "/") && !slices.Contains(standardFinalizers, f) {
			out = append(out, field.Invalid(at.Index(i), f, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return out
}

// invalid returns one error for each message about a value.
func invalid(at *field.Path, value any, messages []string) field.ErrorList {
	var out field.ErrorList
	for _, m := range messages {
		out = append(out, field.Invalid(at, value, m))
	}
	return out
}

// optionalName checks a name unless it is empty.
func optionalName(at *field.Path, name string, rule func(string) []string) field.ErrorList {
	if name == "" {
		return nil
	}
	return invalid(at, name, rule(name))
}

// dnsLabel checks a DNS label unless it is empty. Required labels are in the generated rules.
func dnsLabel(at *field.Path, name string) field.ErrorList {
	return optionalName(at, name, validation.IsDNS1123Label)
}

// port checks the number of a port.
func port(at *field.Path, n int32) field.ErrorList {
	return invalid(at, n, validation.IsValidPortNum(int(n)))
}

// nonNegative checks a number unless it is nil.
func nonNegative[N int32 | int64](at *field.Path, n *N) field.ErrorList {
	if n == nil {
		return nil
	}
	return apivalidation.ValidateNonnegativeField(int64(*n), at)
}

// configKeys checks the keys of a ConfigMap or Secret.
func configKeys[V any](at *field.Path, of map[string]V) field.ErrorList {
	var out field.ErrorList
	for _, k := range sortedKeys(of) {
		out = append(out, invalid(at.Key(k), k, validation.IsConfigMapKey(k))...)
	}
	return out
}

// supported checks a value of an enum unless it is empty.
func supported(at *field.Path, value string, allowed ...string) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

// maxData is the maximum total size of the values of a ConfigMap or Secret, in bytes.
const maxData = 1 << 20

// dataSize checks the total size of a ConfigMap or Secret.
func dataSize(at *field.Path, bytes int) field.ErrorList {
	if bytes <= maxData {
		return nil
	}
	return field.ErrorList{field.TooLong(at, fmt.Sprintf("%d bytes", bytes), maxData)}
}
