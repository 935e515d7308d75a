package program

import (
	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/object"
)

// refOf returns what is known of the identity of an object that is not complete. A namespace
// that is there but not known yet makes the name unknown as well.
func refOf(v cue.Value) object.Ref {
	at := func(path ...cue.Selector) string { return stringOr(v.LookupPath(cue.MakePath(path...)), "") }
	out := object.Ref{
		GroupVersionKind: schema.FromAPIVersionAndKind(at(cue.Str("apiVersion")), at(cue.Str("kind"))),
		Name:             at(cue.Str("metadata"), cue.Str("name")),
	}
	namespace := lookup(v, "metadata", "namespace")
	if namespace.Exists() {
		out.Namespace = stringOr(namespace, "")
		if out.Namespace == "" {
			out.Name = ""
		}
	}
	return out
}
