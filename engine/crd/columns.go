package crd

import (
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

type column = apiextensionsv1.CustomResourceColumnDefinition

// Every kind has these columns, so that kubectl get shows the state in the same way for all
// operators.
var (
	columnsBefore = []column{
		{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`, Description: "Whether everything is applied and healthy."},
		{Name: "Phase", Type: "string", JSONPath: ".status.phase", Description: "The phase of the rollout."},
		{Name: "Components", Type: "string", JSONPath: ".status.componentsReady", Description: "How many components are ready, of how many."},
	}
	columnsAfter = []column{
		{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
	}
	columnTypes = []string{"integer", "number", "string", "boolean", "date"}
)

// columns puts the author's columns between the built-in ones.
func columns(own []column) []column {
	return slices.Concat(columnsBefore, own, columnsAfter)
}

// checkColumnPath adds a fault for a column of a field that the schema does not have. Paths with
// filters are left to the API server.
func (g *generator) checkColumnPath(at location, c column, schema *schemaProps) {
	if !simplePath.MatchString(c.JSONPath) || strings.HasPrefix(c.JSONPath, ".metadata.") {
		return
	}
	for name := range strings.SplitSeq(c.JSONPath[1:], ".") {
		property, ok := schema.Properties[name]
		if !ok {
			if !ptr.Deref(schema.XPreserveUnknownFields, false) && schema.AdditionalProperties == nil {
				g.fault(at, quoted(c.Name)+"there is no field "+c.JSONPath, "correct the jsonPath")
			}
			return
		}
		schema = &property
	}
}

var simplePath = regexp.MustCompile(`^(\.[A-Za-z_][A-Za-z0-9_-]*)+$`)

func (g *generator) checkColumns(at location, own []column) {
	seen := map[string]bool{}
	for _, c := range columns(nil) {
		seen[c.Name] = true
	}
	for _, c := range own {
		if seen[c.Name] {
			g.fault(at, quoted(c.Name)+"there is already a column of this name", "Ready, Phase, Components and Age are built in")
		}
		seen[c.Name] = true
		if c.Name == "" {
			g.fault(at, quoted(c.Name)+"a column must have a name", "")
		}
		if !strings.HasPrefix(c.JSONPath, ".") {
			g.fault(at, quoted(c.Name)+"a jsonPath must begin with a dot", `write ".spec.replicas"`)
		}
		if !slices.Contains(columnTypes, c.Type) {
			g.fault(at, quoted(c.Name)+"unknown type "+c.Type, "write one of "+strings.Join(columnTypes, ", "))
		}
	}
}
