package patch

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
)

// The engine writes with its own permissions, which the author of a Patch may not have. So the
// changed object is compared with the rendered one, however the change was made: some fields
// must never differ, and some only if the package has declared them patchable.

// immutableFields are the fields that a patch never changes: the identity of the object, its
// owners, its finalizers, and what the API server manages.
var immutableFields = [][]string{
	{"apiVersion"},
	{"kind"},
	{"metadata", "name"},
	{"metadata", "generateName"},
	{"metadata", "namespace"},
	{"metadata", "uid"},
	{"metadata", "resourceVersion"},
	{"metadata", "generation"},
	{"metadata", "creationTimestamp"},
	{"metadata", "deletionTimestamp"},
	{"metadata", "deletionGracePeriodSeconds"},
	{"metadata", "ownerReferences"},
	{"metadata", "finalizers"},
	{"metadata", "managedFields"},
}

// ImmutableFields returns the fields that a patch never changes, whatever a package declares.
// The engine's own labels and annotations are immutable too, but not in the list: there are
// many.
func ImmutableFields() []string {
	var out []string
	for _, path := range immutableFields {
		out = append(out, strings.Join(path, "."))
	}
	return out
}

// checkIdentity errors if a change affects an immutable field.
func checkIdentity(before, after map[string]any) error {
	for _, path := range immutableFields {
		if !equality.Semantic.DeepEqual(lookup(before, path), lookup(after, path)) {
			return changeErrorf(Invalid, "a patch must not change %s", strings.Join(path, "."))
		}
	}
	if m, ok := after["metadata"]; ok && mapOf(m) == nil {
		return changeErrorf(Invalid, "a patch must not replace metadata by something that is not an object")
	}
	old, updated := newPrivileges(), newPrivileges()
	old.addEngineMetadata(nil, before)
	updated.addEngineMetadata(nil, after)
	if changed := differences(old, updated); len(changed) > 0 {
		return changeErrorf(Invalid, "a patch must not change %s: the engine relies on it", formatPath(changed[0]))
	}
	return nil
}

func lookup(v any, path []string) any {
	for _, name := range path {
		v = mapOf(v)[name]
	}
	return v
}

// checkPrivileges errors if a change affects a field that gives privileges, unless the package
// has declared that field patchable.
func checkPrivileges(kind schema.GroupKind, before, after map[string]any, open map[string]bool) error {
	old, updated := newPrivileges(), newPrivileges()
	old.addManifest(kind, before)
	updated.addManifest(kind, after)
	changed := slices.DeleteFunc(differences(old, updated), func(path []string) bool { return isPatchable(path, open) })
	if len(changed) == 0 {
		return nil
	}
	more := ""
	if n := len(changed) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return changeErrorf(NotPatchable, "a patch must not change %s%s of a %s; to allow it, set patchable: %q: true in the object's policy in the package",
		formatPath(changed[0]), more, kind.Kind, patchablePath(changed[0]))
}

// isPatchable reports whether a package has declared a path, or a parent of it, patchable.
func isPatchable(path []string, open map[string]bool) bool {
	full := patchablePath(path)
	for p, yes := range open {
		if yes && (full == p || strings.HasPrefix(full, p+".") || strings.HasPrefix(full, p+"[]")) {
			return true
		}
	}
	return false
}

// patchablePath returns a path in the notation of a package: without the names of list items.
func patchablePath(path []string) string {
	out := slices.Clone(path)
	for i, step := range out {
		if isItemStep(step) {
			out[i] = unnamedItem
		}
	}
	return formatPath(out)
}

// formatPath returns a path as text.
func formatPath(path []string) string {
	var b strings.Builder
	for i, step := range path {
		if i > 0 && !isItemStep(step) {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}

// deniedGroups are the API groups in which a patch changes only fields that the package has
// declared patchable: their kinds give privileges, or affect the requests of other users.
var deniedGroups = []string{
	"admissionregistration.k8s.io",
	"apiextensions.k8s.io",
	"apiregistration.k8s.io",
	"authentication.k8s.io",
	"authorization.k8s.io",
	"certificates.k8s.io",
	"rbac.authorization.k8s.io",
	Kind.Group,
}

// deniedKinds are such kinds of other groups: identities, secrets, the endpoints of Services,
// and restrictions of a namespace.
var deniedKinds = []schema.GroupKind{
	{Kind: "Endpoints"},
	{Kind: "LimitRange"},
	{Kind: "Namespace"},
	{Kind: "Node"},
	{Kind: "PersistentVolume"},
	{Kind: "ResourceQuota"},
	{Kind: object.SecretKind},
	{Kind: "ServiceAccount"},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
}

func isDeniedKind(kind schema.GroupKind) bool {
	return slices.Contains(deniedGroups, kind.Group) || slices.Contains(deniedKinds, kind)
}
