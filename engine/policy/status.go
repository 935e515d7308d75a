package policy

import (
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// conditions is the field of a status that several clients share: each writes its own types.
const conditions = "conditions"

// Status returns a policy by which only the operator may write the given fields of a resource's
// status. Of the conditions, that applies to the given types, or to all of them if types is
// empty. Other clients with permission may write the rest. Creation needs no policy, because
// the API server drops a status on creation.
func Status(resource schema.GroupResource, fields, types []string, o Options) []any {
	return o.objects(o.status(resource, fields, types))
}

// status returns the rule of Status.
func (o Options) status(resource schema.GroupResource, fields, types []string) rule {
	whole := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return f == conditions && len(types) > 0 })
	ours := func(status string) string {
		return "has(variables." + status + "." + conditions + ") ? variables." + status + "." + conditions + ".filter(c, has(c.type) && c.type in " + celList(types) + ") : []"
	}
	return rule{
		name: "operetta-status." + resource.String(),
		resource: admissionregistrationv1.Rule{
			APIGroups: []string{resource.Group}, APIVersions: []string{"*"}, Resources: []string{resource.Resource + "/status"},
		},
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
		matchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "not-the-operator", Expression: "!(request.userInfo.username in " + celList(o.Operators) + ")"},
		},
		variables: []admissionregistrationv1.Variable{
			{Name: "before", Expression: "has(oldObject.status) ? oldObject.status : {}"},
			{Name: "after", Expression: "has(object.status) ? object.status : {}"},
			{Name: "oursBefore", Expression: ours("before")},
			{Name: "oursAfter", Expression: ours("after")},
			{Name: "forged", Expression: celList(whole) + `.filter(f, (f in variables.before) != (f in variables.after) ||
  (f in variables.after && variables.before[f] != variables.after[f])) + (variables.oursBefore != variables.oursAfter ? ["` + conditions + `"] : [])`},
		},
		validations: []admissionregistrationv1.Validation{{
			Expression:        "size(variables.forged) == 0",
			MessageExpression: `"status." + variables.forged.join(", status.") + ` + strconv.Quote(": only the operator may write it, which is "+strings.Join(o.Operators, " or ")),
			Message:           "only the operator may write the engine's part of the status",
			Reason:            new(metav1.StatusReasonForbidden),
		}},
	}
}
