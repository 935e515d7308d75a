package crd

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// YAML returns a CRD as a manifest for kubectl apply, without the empty status that the Go
// type would add. It errors when the CRD cannot be encoded.
func YAML(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	return manifest(crd, yaml.Marshal)
}

// JSON returns what YAML does as JSON, for an apply.
func JSON(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	return manifest(crd, json.Marshal)
}

// manifest returns a CRD as an encoder writes it.
func manifest(crd *apiextensionsv1.CustomResourceDefinition, encode func(any) ([]byte, error)) ([]byte, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	delete(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	text, err := encode(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	return text, nil
}

func rawJSON(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
