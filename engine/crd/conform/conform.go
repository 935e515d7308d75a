// Package conform validates a CustomResourceDefinition with the API server's own code.
//
// It runs the checks of an API server for a CRD ([Check]), and what an API server then does
// to a custom resource ([Server.Admit]: defaults, unknown fields, schema, list types, CEL
// rules), without a server.
//
// It does not copy these rules, so they are those of the version of
// k8s.io/apiextensions-apiserver in go.mod. It is a separate package because it depends on
// the large CEL library: vetting a package needs it, the operator does not.
package conform

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	servervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Check errors, with all faults, if an API server would reject crd.
func Check(crd *apiextensionsv1.CustomResourceDefinition) error {
	errs, err := Errors(crd)
	if err != nil {
		return err
	}
	if err := errs.ToAggregate(); err != nil {
		return fmt.Errorf("%s: %w", crd.Name, err)
	}
	return nil
}

// Errors returns every fault for which an API server would reject crd, each with the path of
// the field within crd; the BadValue of an error about a rule is the rule's text. It errors
// when crd cannot be converted.
//
// A server does not check rules while a default is invalid, although the default may be invalid
// because of a faulty rule. This function checks all rules, and reports a default only if its
// rules are valid.
func Errors(crd *apiextensionsv1.CustomResourceDefinition) (field.ErrorList, error) {
	errs, err := validate(crd)
	if err != nil || len(errs) == 0 {
		return nil, err
	}
	bare := crd.DeepCopy()
	for _, v := range bare.Spec.Versions {
		if v.Schema != nil {
			withoutDefaults(v.Schema.OpenAPIV3Schema)
		}
	}
	rules, err := validate(bare)
	if err != nil {
		return nil, err
	}
	for _, e := range errs {
		around, _, isDefault := strings.Cut(e.Field, ".default")
		broken := isDefault && slices.ContainsFunc(rules, func(r *field.Error) bool { return strings.HasPrefix(r.Field, around) })
		known := slices.ContainsFunc(rules, func(r *field.Error) bool { return r.Field == e.Field && r.Detail == e.Detail })
		if !broken && !known {
			rules = append(rules, e)
		}
	}
	return rules, nil
}

// withoutDefaults removes the defaults from a schema.
func withoutDefaults(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	s.Default = nil
	for name, property := range s.Properties {
		withoutDefaults(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		withoutDefaults(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		withoutDefaults(s.AdditionalProperties.Schema)
	}
}

// validate returns the errors that an API server would report.
func validate(crd *apiextensionsv1.CustomResourceDefinition) (field.ErrorList, error) {
	internal, err := convert(crd)
	if err != nil {
		return nil, err
	}
	// The server fills this in before it validates.
	for _, v := range internal.Spec.Versions {
		if v.Storage {
			internal.Status.StoredVersions = []string{v.Name}
		}
	}
	errs := validation.ValidateCustomResourceDefinition(context.Background(), internal)
	for i := range internal.Spec.Versions {
		at := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		_, structural, err := schemaOf(internal, internal.Spec.Versions[i].Name)
		if err != nil {
			errs = append(errs, field.Invalid(at, "", err.Error()))
			continue
		}
		errs = append(errs, schema.ValidateStructural(at, structural)...)
	}
	for _, e := range errs {
		if rule, ok := e.BadValue.(apiextensions.ValidationRule); ok {
			e.BadValue = rule.Rule
		}
	}
	return errs, nil
}

// Server admits the custom resources of one version, as an API server would.
type Server struct {
	structural *schema.Structural
	schema     servervalidation.SchemaValidator
	rules      *cel.Validator
}

// NewServer prepares a server for one version of crd.
func NewServer(crd *apiextensionsv1.CustomResourceDefinition, version string) (*Server, error) {
	declared, structural, err := ofVersion(crd, version)
	if err != nil {
		return nil, err
	}
	validator, _, err := servervalidation.NewSchemaValidator(declared)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	return &Server{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// Admit returns what the server would store for object, or errors if it would reject it. old is
// the object that it replaces, nil for a new one. Unknown fields are rejected, as they are for
// kubectl, which asks for strict validation.
func (s *Server) Admit(object, old map[string]any) (map[string]any, error) {
	stored := runtime.DeepCopyJSON(object)
	var errs field.ErrorList
	unknown := pruning.PruneWithOptions(stored, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), "", "unknown field"))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(stored, s.structural)
	defaulting.Default(stored, s.structural)
	var oldObject any // an untyped nil tells the validator that there is no old object
	if old == nil {
		errs = append(errs, servervalidation.ValidateCustomResource(nil, stored, s.schema)...)
	} else {
		oldObject = old
		errs = append(errs, servervalidation.ValidateCustomResourceUpdate(nil, stored, old, s.schema)...)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, stored)...)
	if s.rules != nil {
		broken, _ := s.rules.Validate(context.Background(), nil, s.structural, stored, oldObject, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return stored, errs.ToAggregate()
}

// Prune removes the unknown fields of an object, as the server does for a client that does not ask for strict validation.
func (s *Server) Prune(object map[string]any) {
	pruning.Prune(object, s.structural, true)
}

// ofVersion returns the schema of one version of a definition, as it is declared and as an API server compiles it.
func ofVersion(crd *apiextensionsv1.CustomResourceDefinition, version string) (*apiextensions.JSONSchemaProps, *schema.Structural, error) {
	if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version }) {
		return nil, nil, fmt.Errorf("%s: there is no version %s", crd.Name, version)
	}
	internal, err := convert(crd)
	if err != nil {
		return nil, nil, err
	}
	declared, structural, err := schemaOf(internal, version)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	return declared, structural, nil
}

func convert(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	crd = crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	return internal, nil
}

func schemaOf(crd *apiextensions.CustomResourceDefinition, version string) (*apiextensions.JSONSchemaProps, *schema.Structural, error) {
	found, err := apiextensions.GetSchemaForVersion(crd, version)
	if err != nil {
		return nil, nil, err
	}
	if found == nil || found.OpenAPIV3Schema == nil {
		return nil, nil, fmt.Errorf("version %s has no schema", version)
	}
	structural, err := schema.NewStructural(found.OpenAPIV3Schema)
	return found.OpenAPIV3Schema, structural, err
}
