package packages

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"operetta.dev/engine/crd"
)

// A jsonSchema is one of a CustomResourceDefinition.
type jsonSchema = apiextensionsv1.JSONSchemaProps

// definition is a CustomResourceDefinition.
type definition = apiextensionsv1.CustomResourceDefinition

// bothDefinitions returns the definition with which two versions of a package can work side by side. What users may write
// stays as the version before has it, so that this one can read all of it, and the status has the fields of both.
// It errors if the next version cannot read what users may write, or reports a field in another form.
func bothDefinitions(before, next *definition) (*definition, error) {
	out := before.DeepCopy()
	if before.Spec.Scope != next.Spec.Scope {
		return nil, errors.New("the scope is another one")
	}
	if before.Annotations[crd.ReachAnnotation] != next.Annotations[crd.ReachAnnotation] {
		return nil, errors.New("the reach is another one")
	}
	if len(before.Spec.Versions) != len(next.Spec.Versions) {
		return nil, errors.New("the versions are others")
	}
	for i := range out.Spec.Versions {
		was := &out.Spec.Versions[i]
		at := slices.IndexFunc(next.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == was.Name })
		if at < 0 || next.Spec.Versions[at].Storage != was.Storage || next.Spec.Versions[at].Served != was.Served {
			return nil, errors.New("the versions are others")
		}
		if err := bothVersions(was, next.Spec.Versions[at]); err != nil {
			return nil, fmt.Errorf("%s: %w", was.Name, err)
		}
	}
	return out, nil
}

// bothVersions puts the fields that another version of a definition reports into one.
func bothVersions(was *apiextensionsv1.CustomResourceDefinitionVersion, next apiextensionsv1.CustomResourceDefinitionVersion) error {
	if was.Schema == nil || was.Schema.OpenAPIV3Schema == nil || next.Schema == nil || next.Schema.OpenAPIV3Schema == nil {
		if equality.Semantic.DeepEqual(was.Schema, next.Schema) {
			return nil
		}
		return errors.New("one of them has no schema")
	}
	a, b := was.Schema.OpenAPIV3Schema, next.Schema.OpenAPIV3Schema
	if err := reads("spec", a.Properties["spec"], b.Properties["spec"]); err != nil {
		return err
	}
	return mergeStatus(a, b)
}

// reportingToo returns a definition with which another version of a package can report as well. It errors if that reports a field in
// another form.
func reportingToo(before, other *definition) (*definition, error) {
	out := before.DeepCopy()
	for i := range out.Spec.Versions {
		version := &out.Spec.Versions[i]
		at := slices.IndexFunc(other.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version.Name })
		if at < 0 || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil || other.Spec.Versions[at].Schema == nil || other.Spec.Versions[at].Schema.OpenAPIV3Schema == nil {
			continue
		}
		if err := mergeStatus(version.Schema.OpenAPIV3Schema, other.Spec.Versions[at].Schema.OpenAPIV3Schema); err != nil {
			return nil, fmt.Errorf("%s: %w", version.Name, err)
		}
	}
	return out, nil
}

// mergeStatus puts the fields that another version reports into a schema.
func mergeStatus(into, from *jsonSchema) error {
	merged, err := reports("status", into.Properties["status"], from.Properties["status"])
	if _, has := from.Properties["status"]; err == nil && has && into.Properties != nil {
		into.Properties["status"] = merged
	}
	return err
}

// reads errors if there may be a value of one schema that is none of the next.
func reads(path string, before, next jsonSchema) error {
	if before.Type != next.Type || before.XIntOrString != next.XIntOrString {
		return fmt.Errorf("%s has another type", path)
	}
	if isTrue(before.XPreserveUnknownFields) && !isTrue(next.XPreserveUnknownFields) || before.Nullable && !next.Nullable {
		return fmt.Errorf("%s is narrower", path)
	}
	if err := bounds(before, next); err != nil {
		return fmt.Errorf("%s is narrower: %w", path, err)
	}
	if err := readsFields(path, before, next); err != nil {
		return err
	}
	if before.AdditionalProperties != nil && before.AdditionalProperties.Schema != nil {
		if next.AdditionalProperties == nil || next.AdditionalProperties.Schema == nil {
			return fmt.Errorf("%s has another form", path)
		}
		return reads(path+".*", *before.AdditionalProperties.Schema, *next.AdditionalProperties.Schema)
	}
	if before.Items != nil && before.Items.Schema != nil && next.Items != nil && next.Items.Schema != nil {
		return reads(path+"[]", *before.Items.Schema, *next.Items.Schema)
	}
	return nil
}

// readsFields is reads for the fields of an object.
func readsFields(path string, before, next jsonSchema) error {
	for _, name := range next.Required {
		if !slices.Contains(before.Required, name) && next.Properties[name].Default == nil {
			return fmt.Errorf("%s.%s is required", path, name)
		}
	}
	if isTrue(before.XPreserveUnknownFields) {
		for _, name := range slices.Sorted(maps.Keys(next.Properties)) {
			if _, ok := before.Properties[name]; !ok {
				return fmt.Errorf("%s.%s is narrower: what users may have written there was not described", path, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		to, ok := next.Properties[name]
		if !ok {
			return fmt.Errorf("%s.%s does not exist any more", path, name)
		}
		if err := reads(path+"."+name, before.Properties[name], to); err != nil {
			return err
		}
	}
	return nil
}

// bounds errors if the next schema demands something of a value itself that the one before does not. What it demands in
// another way may be narrower.
func bounds(before, next jsonSchema) error {
	switch {
	case len(next.Enum) > 0 && !equality.Semantic.DeepEqual(before.Enum, next.Enum) && !allAmong(before.Enum, next.Enum):
		return errors.New("enum")
	case below(next.Maximum, before.Maximum) || next.ExclusiveMaximum && !before.ExclusiveMaximum,
		above(next.Minimum, before.Minimum) || next.ExclusiveMinimum && !before.ExclusiveMinimum:
		return errors.New("maximum or minimum")
	case below(next.MaxLength, before.MaxLength), below(next.MaxItems, before.MaxItems), below(next.MaxProperties, before.MaxProperties),
		above(next.MinLength, before.MinLength), above(next.MinItems, before.MinItems), above(next.MinProperties, before.MinProperties):
		return errors.New("its size")
	case next.Pattern != "" && next.Pattern != before.Pattern, next.Format != "" && next.Format != before.Format:
		return errors.New("pattern or format")
	case next.MultipleOf != nil && !equality.Semantic.DeepEqual(before.MultipleOf, next.MultipleOf), next.UniqueItems && !before.UniqueItems:
		return errors.New("multipleOf or uniqueItems")
	case next.Not != nil && !equality.Semantic.DeepEqual(before.Not, next.Not),
		differs(before.AllOf, next.AllOf), differs(before.AnyOf, next.AnyOf), differs(before.OneOf, next.OneOf):
		return errors.New("not, allOf, anyOf or oneOf")
	}
	for _, rule := range next.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule }) {
			return errors.New("a rule")
		}
	}
	return nil
}

// allAmong reports whether all of some values, of which there are any, are among others.
func allAmong(some, others []apiextensionsv1.JSON) bool {
	for _, v := range some {
		if !slices.ContainsFunc(others, func(o apiextensionsv1.JSON) bool { return string(o.Raw) == string(v.Raw) }) {
			return false
		}
	}
	return len(some) > 0
}

// differs reports whether a list of schemas demands something else than another one.
func differs(before, next []jsonSchema) bool {
	return len(next) > 0 && !equality.Semantic.DeepEqual(before, next)
}

// below reports whether an upper bound excludes more than another one, and above whether a lower bound does.
func below[T int64 | float64](next, before *T) bool {
	return next != nil && (before == nil || *next < *before)
}

func above[T int64 | float64](next, before *T) bool {
	return next != nil && (before == nil || *next > *before)
}

func isTrue(b *bool) bool { return b != nil && *b }

// reports returns the schema of what either of two versions reports. It errors if they report the same in different forms.
func reports(path string, before, next jsonSchema) (jsonSchema, error) {
	before.Description, next.Description = "", ""
	if equality.Semantic.DeepEqual(before, next) {
		return before, nil
	}
	switch { // only one of them may report it
	case equality.Semantic.DeepEqual(before, jsonSchema{}):
		return next, nil
	case equality.Semantic.DeepEqual(next, jsonSchema{}):
		return before, nil
	}
	if before.Type != next.Type || before.XIntOrString != next.XIntOrString || (before.AdditionalProperties == nil) != (next.AdditionalProperties == nil) ||
		!equality.Semantic.DeepEqual(before.XListType, next.XListType) || !slices.Equal(before.XListMapKeys, next.XListMapKeys) || !equality.Semantic.DeepEqual(before.XMapType, next.XMapType) {
		return jsonSchema{}, fmt.Errorf("%s is reported in another form", path)
	}
	out := jsonSchema{Type: before.Type, Nullable: before.Nullable || next.Nullable, XIntOrString: before.XIntOrString, XListType: before.XListType, XListMapKeys: before.XListMapKeys, XMapType: before.XMapType}
	if isTrue(before.XPreserveUnknownFields) || isTrue(next.XPreserveUnknownFields) {
		out.XPreserveUnknownFields = new(true)
	}
	for _, name := range before.Required {
		if slices.Contains(next.Required, name) {
			out.Required = append(out.Required, name)
		}
	}
	return out, mergeParts(path, &out, before, next)
}

// mergeParts merges the fields and elements of what two versions report.
func mergeParts(path string, out *jsonSchema, before, next jsonSchema) error {
	merge := func(path string, a, b *jsonSchema) (*jsonSchema, error) {
		both, err := reports(path, *a, *b)
		return &both, err
	}
	for _, from := range []jsonSchema{before, next} {
		for name, field := range from.Properties {
			if out.Properties == nil {
				out.Properties = map[string]jsonSchema{}
			}
			both, err := reports(path+"."+name, before.Properties[name], next.Properties[name])
			if err != nil {
				return err
			}
			both.Description = field.Description
			out.Properties[name] = both
		}
	}
	var err error
	if before.AdditionalProperties != nil && before.AdditionalProperties.Schema != nil && next.AdditionalProperties.Schema != nil {
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{}
		if out.AdditionalProperties.Schema, err = merge(path+".*", before.AdditionalProperties.Schema, next.AdditionalProperties.Schema); err != nil {
			return err
		}
	}
	if before.Items != nil && before.Items.Schema != nil && next.Items != nil && next.Items.Schema != nil {
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{}
		out.Items.Schema, err = merge(path+"[]", before.Items.Schema, next.Items.Schema)
	}
	return err
}
