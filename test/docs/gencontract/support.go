package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notSupported says which fields the engine refuses for now, and what is refused.
// The test holds it against what `operetta vet` says.
var notSupported = map[string]string{
	"#Controller.versions": "a second version is refused.",
	"#Version.convert":     "a version that has it is refused.",
}

// checkMarks errors when a mark is about a field that does not exist.
func checkMarks(definitions []definition) error {
	var faults []error
	for _, path := range slices.Sorted(maps.Keys(notSupported)) {
		name, field, _ := strings.Cut(path, ".")
		if !hasField(definitions, name, field) {
			faults = append(faults, fmt.Errorf("support.go: the contract has no field %s", path))
		}
	}
	return errors.Join(faults...)
}

func hasField(definitions []definition, name, path string) bool {
	for _, d := range definitions {
		for _, f := range d.fields {
			if d.name == name && f.path == path {
				return true
			}
		}
	}
	return false
}
