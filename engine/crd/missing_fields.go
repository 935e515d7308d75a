package crd

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// MissingField returns what the definition in the cluster lacks compared with the wanted one: a served version, or
// the path of a field that is missing or has another type. It returns "" if nothing is missing. A client that writes
// by the wanted definition would lose such fields.
func MissingField(present, wanted *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range wanted.Spec.Versions {
		if !v.Served {
			continue
		}
		at := slices.IndexFunc(present.Spec.Versions, func(p apiextensionsv1.CustomResourceDefinitionVersion) bool { return p.Name == v.Name })
		if at < 0 || !present.Spec.Versions[at].Served {
			return "version " + v.Name
		}
		if v.Schema == nil || present.Spec.Versions[at].Schema == nil {
			continue
		}
		if path := lackingField(present.Spec.Versions[at].Schema.OpenAPIV3Schema, v.Schema.OpenAPIV3Schema, v.Name); path != "" {
			return path
		}
	}
	return ""
}

// lackingField returns the path of the first field of one schema that another one does not have.
func lackingField(present, wanted *schemaProps, path string) string {
	switch {
	case wanted == nil:
		return ""
	case present == nil:
		return path
	case present.XPreserveUnknownFields != nil && *present.XPreserveUnknownFields:
		return ""
	case present.Type != wanted.Type || present.XIntOrString != wanted.XIntOrString:
		return path
	case wanted.XPreserveUnknownFields != nil && *wanted.XPreserveUnknownFields:
		return path
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.Properties)) {
		field := wanted.Properties[name]
		var has *schemaProps
		if is, ok := present.Properties[name]; ok {
			has = &is
		}
		if lacking := lackingField(has, &field, path+"."+name); lacking != "" {
			return lacking
		}
	}
	if wanted.Items != nil {
		var has *schemaProps
		if present.Items != nil {
			has = present.Items.Schema
		}
		if lacking := lackingField(has, wanted.Items.Schema, path+"[]"); lacking != "" {
			return lacking
		}
	}
	if wanted.AdditionalProperties == nil {
		return ""
	}
	if present.AdditionalProperties == nil {
		return path + "{}"
	}
	return lackingField(present.AdditionalProperties.Schema, wanted.AdditionalProperties.Schema, path+"{}")
}
