package vet

import (
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/source"
)

// maxDefinitions bounds a file of definitions, in bytes.
const maxDefinitions = 64 << 20

// ModuleDefinitions returns the CustomResourceDefinitions in the folders crds of the modules of packages. It errors with the name of a file
// that cannot be read.
func ModuleDefinitions(dirs ...string) ([]map[string]any, error) {
	files, err := source.DefinitionFiles(dirs)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, file := range files {
		all, err := definitionsIn(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, all...)
	}
	return out, nil
}

// definitionsIn returns the CustomResourceDefinitions among the documents of a file.
func definitionsIn(name string) ([]map[string]any, error) {
	switch info, err := os.Stat(name); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file") // to read a pipe or a device may never end
	case info.Size() > maxDefinitions:
		return nil, fmt.Errorf("it has more than %d bytes", maxDefinitions)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var out []map[string]any
	for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var object map[string]any
		switch err := documents.Decode(&object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		}
		out = append(out, definedBy(object)...)
	}
}

// definedBy returns an object if it is a CustomResourceDefinition, and those in it if it is a List.
func definedBy(object map[string]any) []map[string]any {
	if _, _, defines := cluster.DefinedBy(object); defines {
		return []map[string]any{object}
	}
	u := unstructured.Unstructured{Object: object}
	if !u.IsList() {
		return nil
	}
	var out []map[string]any
	_ = u.EachListItem(func(item runtime.Object) error {
		if item, is := item.(*unstructured.Unstructured); is {
			out = append(out, definedBy(item.Object)...)
		}
		return nil
	}) // what is no object in it defines nothing
	return out
}
