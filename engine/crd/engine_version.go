package crd

import (
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// DefinitionsAnnotation is the annotation of the definitions of the engine's own kinds, such as Package, with a number that
// grows whenever one of them says something that earlier engines do not know.
const DefinitionsAnnotation = "operetta.dev/definitions"

// IsNewer reports whether a definition of one of the engine's own kinds is that of a newer engine than another one.
// An older definition must not replace a newer one: the API server would drop the fields that it does not describe
// from each object that is written, such as a limit that somebody relies on. A definition without a number is older
// than every one with a number.
func IsNewer(present, than *apiextensionsv1.CustomResourceDefinition) bool {
	number := func(d *apiextensionsv1.CustomResourceDefinition) int {
		out, err := strconv.Atoi(d.Annotations[DefinitionsAnnotation])
		if err != nil {
			return 0
		}
		return out
	}
	return number(than) > 0 && number(present) > number(than)
}
