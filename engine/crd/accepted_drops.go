package crd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// DropsAnnotation is the annotation of a definition by which an administrator accepts that resources lose fields when another one takes
// its place. Its value is the DropsDigest of both: a later change is asked for again.
const DropsAnnotation = "operetta.dev/accepted-drops"

// DropsDigest identifies the replacement of one definition by another, by what the versions of both say of resources: 16 hexadecimal digits.
func DropsDigest(present, next *apiextensionsv1.CustomResourceDefinition) string {
	text, err := json.Marshal([][]apiextensionsv1.CustomResourceDefinitionVersion{present.Spec.Versions, next.Spec.Versions})
	if err != nil {
		panic("engine/crd: " + err.Error()) // unreachable: a schema is plain data
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
