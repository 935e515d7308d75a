package program

import (
	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Identity is what tells an object from all others. It is often known before the
// object is complete, so that the object can be announced before it is written.
type Identity struct {
	APIVersion, Kind, Namespace, Name string
}

// Known reports whether the identity is complete; a namespace may be left out.
func (i Identity) Known() bool { return i.APIVersion != "" && i.Kind != "" && i.Name != "" }

// identityIn returns the identity of a complete object.
func identityIn(manifest map[string]any) Identity {
	metadata, _ := manifest["metadata"].(map[string]any)
	text := func(m map[string]any, key string) string {
		s, _ := m[key].(string)
		return s
	}
	return Identity{
		APIVersion: text(manifest, "apiVersion"),
		Kind:       text(manifest, "kind"),
		Namespace:  text(metadata, "namespace"),
		Name:       text(metadata, "name"),
	}
}

// GroupVersionKind returns the object's type.
func (i Identity) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(i.APIVersion, i.Kind)
}

// identityOf returns what is known of an object's identity. A namespace that is
// there but not known yet makes the name unknown as well.
func identityOf(v cue.Value) Identity {
	out := Identity{
		APIVersion: stringOr(v.LookupPath(cue.MakePath(cue.Str("apiVersion"))), ""),
		Kind:       stringOr(v.LookupPath(cue.MakePath(cue.Str("kind"))), ""),
		Name:       stringOr(v.LookupPath(cue.MakePath(cue.Str("metadata"), cue.Str("name"))), ""),
	}
	namespace := v.LookupPath(cue.MakePath(cue.Str("metadata"), cue.Str("namespace")))
	if namespace.Exists() {
		out.Namespace = stringOr(namespace, "")
		if out.Namespace == "" {
			out.Name = ""
		}
	}
	return out
}
