package crd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// AcceptedLossAnnotation is the annotation by which an administrator accepts that a definition is installed under which resources would
// lose fields, or are refused. Its value is the LossDigest of that definition: a later one is asked for again.
const AcceptedLossAnnotation = "operetta.dev/accepted-loss"

// LossDigest identifies what the versions of a definition say of resources.
func LossDigest(of *apiextensionsv1.CustomResourceDefinition) string {
	hash := sha256.New()
	for _, v := range of.Spec.Versions {
		text, err := json.Marshal(v.Schema)
		if err != nil {
			panic("engine/crd: " + err.Error()) // unreachable: a schema is plain data
		}
		fmt.Fprintf(hash, "%s %d %s\n", v.Name, len(text), text)
	}
	return hex.EncodeToString(hash.Sum(nil)[:6])
}

// Narrowed is a version of a definition that may read less in the next one.
type Narrowed struct {
	Version string
	// Why names the first field, and what is narrower about it.
	Why string
}

// NarrowedVersions returns the versions of a definition that objects may be stored or read in, and under which there may be
// values that the next definition would drop or refuse. The status does not count: the operator writes it anew. Neither do
// rules: an API server asks them only about what changes.
func NarrowedVersions(present, next *apiextensionsv1.CustomResourceDefinition) []Narrowed {
	var out []Narrowed
	for i := range present.Spec.Versions {
		was := &present.Spec.Versions[i]
		at := slices.IndexFunc(next.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == was.Name })
		if at < 0 || !was.Served && !slices.Contains(present.Status.StoredVersions, was.Name) {
			continue // CheckStored looks at what is stored in a version that is gone
		}
		before, after := schemaOf(was), schemaOf(&next.Spec.Versions[at])
		delete(before.Properties, "status")
		delete(after.Properties, "status")
		if err := (narrowing{}).reads(was.Name, before, after); err != nil {
			out = append(out, Narrowed{was.Name, err.Error()})
		}
	}
	return out
}

// schemaOf returns a copy of the schema of a version. One without a schema takes anything.
func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion) schemaProps {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return schemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	}
	return *v.Schema.OpenAPIV3Schema.DeepCopy()
}

// Narrows errors, with the path of the field, if there may be a value of one schema that is none of the next.
func Narrows(path string, before, next apiextensionsv1.JSONSchemaProps) error {
	return narrowing{rules: true}.reads(path, before, next)
}

// narrowing compares two schemas.
type narrowing struct {
	// rules says that a rule which only the next one has makes it narrower.
	rules bool
}

// reads errors if there may be a value of one schema that is none of the next.
func (n narrowing) reads(path string, before, next schemaProps) error {
	if before.Type != next.Type || before.XIntOrString != next.XIntOrString {
		return fmt.Errorf("%s has another type", path)
	}
	if isTrue(before.XPreserveUnknownFields) && !isTrue(next.XPreserveUnknownFields) || before.Nullable && !next.Nullable {
		return fmt.Errorf("%s is narrower", path)
	}
	if err := n.bounds(before, next); err != nil {
		return fmt.Errorf("%s is narrower: %w", path, err)
	}
	if err := n.readsFields(path, before, next); err != nil {
		return err
	}
	if before.AdditionalProperties != nil && (before.AdditionalProperties.Schema != nil || before.AdditionalProperties.Allows) {
		if before.AdditionalProperties.Schema == nil && next.AdditionalProperties != nil && next.AdditionalProperties.Schema == nil && next.AdditionalProperties.Allows {
			return nil
		}
		if before.AdditionalProperties.Schema == nil || next.AdditionalProperties == nil || next.AdditionalProperties.Schema == nil {
			return fmt.Errorf("%s has another form", path)
		}
		return n.reads(path+".*", *before.AdditionalProperties.Schema, *next.AdditionalProperties.Schema)
	}
	if before.Items != nil && before.Items.Schema != nil && next.Items != nil && next.Items.Schema != nil {
		return n.reads(path+"[]", *before.Items.Schema, *next.Items.Schema)
	}
	return nil
}

// readsFields is reads for the fields of an object.
func (n narrowing) readsFields(path string, before, next schemaProps) error {
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
		if err := n.reads(path+"."+name, before.Properties[name], to); err != nil {
			return err
		}
	}
	return nil
}

// bounds errors if the next schema demands something of a value itself that the one before does not. What it demands in
// another way may be narrower.
func (n narrowing) bounds(before, next schemaProps) error {
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
	case next.XEmbeddedResource && !before.XEmbeddedResource, isKeyed(next) && (!equality.Semantic.DeepEqual(before.XListType, next.XListType) || !slices.Equal(before.XListMapKeys, next.XListMapKeys)):
		return errors.New("the kind of its elements")
	}
	for _, rule := range next.XValidations {
		if n.rules && !slices.ContainsFunc(before.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule }) {
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

// isKeyed reports whether no two elements of a list may be alike.
func isKeyed(s schemaProps) bool { return s.XListType != nil && *s.XListType != "atomic" }

// differs reports whether a list of schemas demands something else than another one.
func differs(before, next []schemaProps) bool {
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
