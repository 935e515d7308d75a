package policy

import (
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/object"
)

// Options identify the operator that the policies are for.
type Options struct {
	// Operators are the users that operators run as. There is at least one.
	Operators []string
	// Namespaces are those in which the policies apply.
	Namespaces object.Namespaces
}

// A rule is the content of a policy.
type rule struct {
	name       string
	resource   admissionregistrationv1.Rule
	operations []admissionregistrationv1.OperationType
	// matchConditions select the requests that it applies to, and objects their objects by labels.
	matchConditions []admissionregistrationv1.MatchCondition
	objects         *metav1.LabelSelector
	variables       []admissionregistrationv1.Variable
	validations     []admissionregistrationv1.Validation
}

// objects returns a policy and its binding.
func (o Options) objects(r rule) []any {
	name := r.name
	if !o.Namespaces.All() {
		name += "." + o.Namespaces.Name() // so that each namespace may have its own operator
	}
	version := admissionregistrationv1.SchemeGroupVersion.String()
	return []any{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: new(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
						RuleWithOperations: admissionregistrationv1.RuleWithOperations{Rule: r.resource, Operations: r.operations},
					}},
				},
				MatchConditions: r.matchConditions,
				Variables:       r.variables,
				Validations:     r.validations,
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        name,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				MatchResources:    &admissionregistrationv1.MatchResources{NamespaceSelector: NamespaceSelector(o.Namespaces), ObjectSelector: r.objects},
			},
		},
	}
}

// NamespaceSelector returns the selector of some namespaces, by the label with their names that the API server keeps, or nil for
// all.
func NamespaceSelector(which object.Namespaces) *metav1.LabelSelector {
	switch {
	case which.All():
		return nil
	case which.Only() != "":
		return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: which.Only()}}
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: which},
	}}
}

// celList returns texts as a CEL list.
func celList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = strconv.Quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
