package patch

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The engine writes with rights of its own, which whoever writes a Patch need not have.
// So what came of a change is compared with what was there before, in whichever way it
// was made: some fields never differ, and some only if the package has opened them.

// fixed are the fields that a patch never changes: they say which object it is, to
// whom it belongs, what holds up its end, and in which state it was written.
var fixed = [][]string{
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

// Fixed returns the fields that a patch never changes, whatever a package says. The
// engine's own labels and annotations are not among them, as there are many.
func Fixed() []string {
	var out []string
	for _, path := range fixed {
		out = append(out, strings.Join(path, "."))
	}
	return out
}

// keepsIdentity checks that a change leaves alone what never changes.
func keepsIdentity(before, after map[string]any) error {
	for _, path := range fixed {
		if !equality.Semantic.DeepEqual(lookup(before, path), lookup(after, path)) {
			return faultf(Invalid, "a patch must not change %s", strings.Join(path, "."))
		}
	}
	if m, ok := after["metadata"]; ok && mapOf(m) == nil {
		return faultf(Invalid, "a patch must not change metadata into something else")
	}
	was, is := newFacts(), newFacts()
	was.marks(nil, before)
	is.marks(nil, after)
	if changed := differences(was, is); len(changed) > 0 {
		return faultf(Invalid, "a patch must not change %s: the engine goes by it", show(changed[0]))
	}
	return nil
}

func lookup(v any, path []string) any {
	for _, name := range path {
		v = mapOf(v)[name]
	}
	return v
}

// keepsRights checks that a change of an object of a kind leaves alone what gives
// rights, but for the fields that the package has opened.
func keepsRights(kind schema.GroupKind, before, after map[string]any, open map[string]bool) error {
	was, is := newFacts(), newFacts()
	was.of(kind, before)
	is.of(kind, after)
	changed := slices.DeleteFunc(differences(was, is), func(path []string) bool { return isOpen(path, open) })
	if len(changed) == 0 {
		return nil
	}
	more := ""
	if n := len(changed) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return faultf(NotPatchable, "a patch must not change %s%s of a %s; to allow it, the package says in the policy of the object: patchable: %q: true",
		show(changed[0]), more, kind.Kind, pattern(changed[0]))
}

// isOpen reports whether a package has opened a path, or one above it.
func isOpen(path []string, open map[string]bool) bool {
	full := pattern(path)
	for p, yes := range open {
		if yes && (full == p || strings.HasPrefix(full, p+".") || strings.HasPrefix(full, p+"[]")) {
			return true
		}
	}
	return false
}

// pattern returns a path as a package writes it: without the names of list items.
func pattern(path []string) string {
	out := slices.Clone(path)
	for i, step := range out {
		if isItem(step) {
			out[i] = anyItem
		}
	}
	return show(out)
}

// show returns a path as people write it.
func show(path []string) string {
	var b strings.Builder
	for i, step := range path {
		if i > 0 && !isItem(step) {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}

// deniedGroups are the API groups of which a patch changes nothing that is not opened:
// they give rights, or decide about the requests of others.
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

// deniedKinds are the same of other groups: identities, what is kept secret, where the
// traffic of a Service goes, and what restricts a namespace.
var deniedKinds = []schema.GroupKind{
	{Kind: "Endpoints"},
	{Kind: "LimitRange"},
	{Kind: "Namespace"},
	{Kind: "Node"},
	{Kind: "PersistentVolume"},
	{Kind: "ResourceQuota"},
	{Kind: "Secret"},
	{Kind: "ServiceAccount"},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
}

func isDenied(kind schema.GroupKind) bool {
	return slices.Contains(deniedGroups, kind.Group) || slices.Contains(deniedKinds, kind)
}
