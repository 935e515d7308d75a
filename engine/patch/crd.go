package patch

import (
	_ "embed" // the definition

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definition is a copy of the file in config/crd.
//
//go:embed patches.operetta.dev.yaml
var definition []byte

// CRD returns the definition of the kind.
func CRD() *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, out); err != nil {
		panic("engine/patch: " + err.Error()) // unreachable: the file is embedded, and a test reads it
	}
	return out
}
