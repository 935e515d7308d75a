package crd

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ConvertedAnnotation is the annotation of a CustomResourceDefinition that lists the versions which its package
// would have served, and which are not: the API server would take the spec of one version for that of
// another one, unless a webhook converts between them. WithConversion serves them.
const ConvertedAnnotation = "operetta.dev/converted-versions"

// withoutConversion serves the storage version alone.
func withoutConversion(crd *apiextensionsv1.CustomResourceDefinition) {
	var converted []string
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; !v.Storage && v.Served {
			v.Served = false
			converted = append(converted, v.Name)
		}
	}
	if len(converted) > 0 {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, ConvertedAnnotation, strings.Join(converted, ","))
	}
}

// UnservedVersions returns the versions of a definition that are not served only because no webhook converts them.
func UnservedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	text := crd.Annotations[ConvertedAnnotation]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// WithConversion returns a definition whose versions a webhook converts, and that serves all that its package says.
// A definition of one version is returned as it is.
func WithConversion(crd *apiextensionsv1.CustomResourceDefinition, by apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceDefinition {
	if len(crd.Spec.Versions) < 2 {
		return crd
	}
	out := crd.DeepCopy()
	unserved := UnservedVersions(crd)
	if len(unserved) > 0 {
		out.Annotations[ConvertedAnnotation] = "" // of whoever has applied it before, too
	}
	for i := range out.Spec.Versions {
		v := &out.Spec.Versions[i]
		v.Served = v.Served || slices.Contains(unserved, v.Name)
	}
	out.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &by, ConversionReviewVersions: []string{"v1"}},
	}
	return out
}

// StorageVersion returns the name of the version that is stored.
func StorageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// CheckStored errors, as the API server does about an invalid definition, if objects that are stored under the
// present definition could not be read under another one, or would be read as what they are not.
func CheckStored(present, next *apiextensionsv1.CustomResourceDefinition) error {
	converts := next.Spec.Conversion != nil && next.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	var problems field.ErrorList
	for i, stored := range present.Status.StoredVersions {
		has := slices.ContainsFunc(next.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored })
		at := field.NewPath("status", "storedVersions").Index(i)
		switch {
		case !has:
			problems = append(problems, field.Invalid(at, stored, fmt.Sprintf(
				"objects may be stored in version %s, which the package does not have any more; keep it, run operetta crd migrate %s, and remove it then", stored, next.Name)))
		case stored != StorageVersion(next) && !converts:
			problems = append(problems, field.Invalid(at, stored, fmt.Sprintf(
				"objects may be stored in version %s, and no webhook converts them to %s; run the operator with webhooks", stored, StorageVersion(next))))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}, next.Name, problems)
}
