package policy

import (
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// conditions is the field of a status that others share: each writes types of its own.
const conditions = "conditions"

// Status returns the policy that nobody but the operator writes some fields of the status
// of a resource, and of its conditions those of some types; all of them where there are no
// types. The rest may be written by whoever has the right to. A status that comes with the
// creation of a resource needs none: the API server drops it.
func Status(resource schema.GroupResource, fields, types []string, o Options) ([]*unstructured.Unstructured, error) {
	whole := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return f == conditions && len(types) > 0 })
	ours := func(status string) string {
		return "has(variables." + status + "." + conditions + ") ? variables." + status + "." + conditions + ".filter(c, has(c.type) && c.type in " + list(types) + ") : []"
	}
	return o.objects(rule{
		name: "operetta-status." + resource.String(),
		resource: admissionregistrationv1.Rule{
			APIGroups: []string{resource.Group}, APIVersions: []string{"*"}, Resources: []string{resource.Resource + "/status"},
		},
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
		when:       admissionregistrationv1.MatchCondition{Name: "not-the-operator", Expression: "!(request.userInfo.username in " + list(o.Operators) + ")"},
		variables: []admissionregistrationv1.Variable{
			{Name: "before", Expression: "has(oldObject.status) ? oldObject.status : {}"},
			{Name: "after", Expression: "has(object.status) ? object.status : {}"},
			{Name: "oursBefore", Expression: ours("before")},
			{Name: "oursAfter", Expression: ours("after")},
			{Name: "forged", Expression: list(whole) + `.filter(f, (f in variables.before) != (f in variables.after) ||
  (f in variables.after && variables.before[f] != variables.after[f])) + (variables.oursBefore != variables.oursAfter ? ["` + conditions + `"] : [])`},
		},
		validations: []admissionregistrationv1.Validation{{
			Expression:        "size(variables.forged) == 0",
			MessageExpression: `"status." + variables.forged.join(", status.") + ` + strconv.Quote(": written by the operator only, which is "+strings.Join(o.Operators, " or ")),
			Message:           "the engine's part of the status is written by the operator only",
			Reason:            new(metav1.StatusReasonForbidden),
		}},
	})
}
