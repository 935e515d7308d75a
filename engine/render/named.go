package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
)

// IsNamed reports whether a text names an object of a component: by their names in the package, as in web, web.deployment
// and web/deployment, or by kind and name as kubectl takes them, as in deployment/shop.
func IsNamed(text, component string, o program.Object) bool {
	if slices.Contains([]string{component, component + "." + o.Name, component + "/" + o.Name}, text) {
		return true
	}
	kind, name, two := strings.Cut(text, "/")
	return two && name == o.Identity.Name && isKind(o.Identity, kind)
}

// isKind reports whether a word is the kind of an object, as kubectl takes it.
func isKind(ref object.Ref, word string) bool {
	plural, singular := meta.UnsafeGuessKindToResource(ref.GroupVersionKind)
	word, group, hasGroup := strings.Cut(strings.ToLower(word), ".")
	return (word == plural.Resource || word == singular.Resource) && (!hasGroup || group == ref.Group)
}
