package crd

import (
	"bytes"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// YAML returns a CRD as a manifest for kubectl apply, without the empty status that the Go
// type would add. It errors when the CRD cannot be encoded.
func YAML(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	text, err := json.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	var object map[string]any
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber() // a float64 does not hold every int64
	if err := numbers.Decode(&object); err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	text, err = yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	return text, nil
}

func rawJSON(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
