package packages

import (
	_ "embed" // the definitions

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// The definitions are copies of the files in config/crd.
//
//go:embed packages.operetta.dev.yaml
var packageDefinition []byte

//go:embed packagerevisions.operetta.dev.yaml
var revisionDefinition []byte

//go:embed overlays.operetta.dev.yaml
var overlayDefinition []byte

// CRDs returns the definitions of Package, PackageRevision and Overlay.
func CRDs() []*apiextensionsv1.CustomResourceDefinition {
	out := make([]*apiextensionsv1.CustomResourceDefinition, 0, 3)
	for _, text := range [][]byte{packageDefinition, revisionDefinition, overlayDefinition} {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			panic("engine/packages: " + err.Error()) // unreachable: the files are embedded, and a test reads them
		}
		out = append(out, definition)
	}
	return out
}
