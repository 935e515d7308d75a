package crd

import (
	"cmp"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// PackageLabel is the label of a CustomResourceDefinition that names the package it was
// generated from. A process that does not run that package finds the resources by it.
const PackageLabel = "operetta.dev/package"

// ReachAnnotation is the annotation of a CustomResourceDefinition that says what its
// resources may own beyond their namespace, in the form that program.ParseReach reads. It
// tells a process that does not run the package what a teardown may delete.
const ReachAnnotation = "operetta.dev/reach"

// AccountAnnotation is the annotation of a CustomResourceDefinition that names the ServiceAccount, as namespace/name, as which
// the operator acts for its resources. It tells a process that does not run the package as whom to tear them down.
const AccountAnnotation = "operetta.dev/service-account"

// WithAccount returns a definition whose resources are served as a ServiceAccount; "" leaves the definition as it is.
func WithAccount(crd *apiextensionsv1.CustomResourceDefinition, account string) *apiextensionsv1.CustomResourceDefinition {
	if account == "" {
		return crd
	}
	out := crd.DeepCopy()
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, AccountAnnotation, account)
	return out
}

// A CustomResource is a custom resource as its author described it.
type CustomResource struct {
	// Package is the name of the package, or "" for a definition without the label.
	Package     string
	Group, Kind string
	// Reach is the value of the annotation, or "" for a definition without it.
	Reach string
	// Plural and Singular are derived from Kind when they are empty.
	Plural, Singular       string
	ShortNames, Categories []string
	// Scope is Namespaced when it is empty.
	Scope apiextensionsv1.ResourceScope
	// Versions are in the order in which they are to appear.
	Versions []Version
	// Description is what kubectl explain says about the kind.
	Description string
}

// Version is one version of a custom resource.
type Version struct {
	Name string
	// Spec is the schema of .spec, never data.
	Spec cue.Value
	// Status holds the author's own status fields, next to those of the engine. It
	// may be a value that does not exist.
	Status cue.Value
	// Served says whether the version is served where a webhook converts it.
	Served bool
	// Storage is true for exactly one version of a definition.
	Storage bool
	// Deprecated is the warning shown to the users of a deprecated version.
	Deprecated string
	// PrinterColumns are shown by kubectl get, before Age.
	PrinterColumns []apiextensionsv1.CustomResourceColumnDefinition
	// Scale is the scale subresource, or nil.
	Scale *apiextensionsv1.CustomResourceSubresourceScale
}

// Generate returns the CustomResourceDefinition of def. It errors with [fault.Faults], and
// returns no CRD, if a CRD cannot express exactly what def says. Only the storage version of
// the CRD is served, until WithConversion serves the others.
func Generate(def CustomResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	return (&generator{}).generate(def)
}

func (g *generator) generate(def CustomResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	def = withNames(def)
	g.checkDefinition(def)
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: def.Plural + "." + def.Group, Labels: labels(def), Annotations: annotations(def)},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: def.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: def.Kind, ListKind: def.Kind + "List",
				Plural: def.Plural, Singular: def.Singular,
				ShortNames: def.ShortNames, Categories: def.Categories,
			},
			Scope: def.Scope,
		},
	}
	for _, v := range def.Versions {
		g.nodes, g.isStatus = 0, false
		crd.Spec.Versions = append(crd.Spec.Versions, g.version(def, v))
	}
	if err := merged(g.faults); err != nil {
		return nil, err
	}
	withoutConversion(crd)
	return crd, nil
}

// labels returns the label that names the package. If the name of the folder is not a
// valid label value, the label is set with an empty value.
func labels(def CustomResource) map[string]string {
	if def.Package == "" {
		return nil
	}
	name := def.Package
	if len(validation.IsValidLabelValue(name)) > 0 {
		name = ""
	}
	return map[string]string{PackageLabel: name}
}

// annotations returns the annotation that says what resources may own beyond their
// namespace.
func annotations(def CustomResource) map[string]string {
	if def.Reach == "" {
		return nil
	}
	return map[string]string{ReachAnnotation: def.Reach}
}

// withNames fills in the names that follow from the kind, as client-go guesses them, so that tools that guess are right.
func withNames(def CustomResource) CustomResource {
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: def.Kind})
	def.Scope = cmp.Or(def.Scope, apiextensionsv1.NamespaceScoped)
	def.Singular = cmp.Or(def.Singular, singular.Resource)
	def.Plural = cmp.Or(def.Plural, plural.Resource)
	return def
}

func (g *generator) version(def CustomResource, v Version) apiextensionsv1.CustomResourceDefinitionVersion {
	at := root("versions." + v.Name)
	before := len(g.faults)
	schema := &apiextensionsv1.JSONSchemaProps{
		Type:        "object",
		Description: def.Description,
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"apiVersion": {Type: "string", Description: apiVersionDoc},
			"kind":       {Type: "string", Description: kindDoc},
			"metadata":   {Type: "object"},
		},
	}
	if spec := g.specSchema(at.field("spec"), v.Spec); spec != nil {
		if len(spec.Required) > 0 || g.refusesDefaults(at.field("spec"), v.Spec) {
			schema.Required = []string{"spec"}
		} else {
			spec.Default = rawJSON(string(emptyDefault(spec)))
		}
		schema.Properties["spec"] = *spec
	}
	g.isStatus = true // what cannot be evaluated yet is left out of it, so that no rule may ask for it
	schema.Properties["status"] = *g.statusSchema(at.field("status"), v.Status)
	if len(g.faults) == before { // a field that could not be expressed is missing from the schema
		for _, c := range v.PrinterColumns {
			g.checkColumnPath(at.field("printerColumns"), c, schema)
		}
	}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: v.Name, Served: v.Served, Storage: v.Storage,
		Deprecated:               v.Deprecated != "",
		Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
		Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}, Scale: v.Scale},
		AdditionalPrinterColumns: columns(v.PrinterColumns),
	}
	if v.Deprecated != "" {
		version.DeprecationWarning = &v.Deprecated
	}
	return version
}

// specSchema returns the schema of .spec, which is always an object.
func (g *generator) specSchema(at location, v cue.Value) *apiextensionsv1.JSONSchemaProps {
	if !v.Exists() {
		problem := "there is no spec"
		if err := v.Err(); err != nil {
			problem += ": " + errorMessage(err)
		}
		g.fault(at, problem, "write spec: {} if there is nothing to configure")
		return nil
	}
	at = at.positionedAt(v)
	schema := g.schema(at, v)
	switch {
	case schema == nil:
		return nil
	case schema.Type != "object" || schema.Nullable:
		g.fault(at, "the spec must be a struct", "")
		return nil
	}
	schema.Description = specDescription(v)
	addDefaultLimits(schema, 0, nil)
	return schema
}

const (
	apiVersionDoc = "The version of the schema of this object, as group/version."
	kindDoc       = "The kind of this object, in CamelCase."
)
