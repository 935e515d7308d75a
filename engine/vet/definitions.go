package vet

import (
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/source"
)

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
		if _, _, defines := cluster.DefinedBy(object); defines {
			out = append(out, object)
		}
	}
}
