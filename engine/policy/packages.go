package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PackageStatus returns a policy by which only the operator may write a field of the status of the Packages
// that it serves. The policies of operators with different selectors have different names. It errors when
// the selector is none.
func PackageStatus(resource schema.GroupResource, fields []string, selector string, o Options) ([]any, error) {
	r := o.status(resource, fields, nil)
	if selector == "" {
		return o.objects(r), nil
	}
	selects, err := metav1.ParseToLabelSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("selecting Packages: %w", err)
	}
	const bytes = 4 // enough to tell the operators of one cluster apart
	sum := sha256.Sum256([]byte(metav1.FormatLabelSelector(selects)))
	r.name, r.objects = r.name+"."+hex.EncodeToString(sum[:bytes]), selects
	return o.objects(r), nil
}

// Packages returns a policy by which a Package with the deletion policy Refuse cannot be deleted while its
// status counts custom resources. The count may lag, and then the Package waits instead.
func Packages(resource schema.GroupResource, o Options) []any {
	return o.objects(rule{
		name:       "operetta-deletion." + resource.String(),
		resource:   admissionregistrationv1.Rule{APIGroups: []string{resource.Group}, APIVersions: []string{"*"}, Resources: []string{resource.Resource}},
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
		matchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "refuses", Expression: `has(oldObject.spec.deletionPolicy) && oldObject.spec.deletionPolicy == "Refuse"`,
		}},
		validations: []admissionregistrationv1.Validation{{
			Expression:        "!has(oldObject.status) || !has(oldObject.status.resources) || oldObject.status.resources == 0",
			MessageExpression: `"there are resources of its kind, " + string(oldObject.status.resources) + " of them, and spec.deletionPolicy is Refuse"`,
			Message:           "there are resources of its kind, and spec.deletionPolicy is Refuse",
			Reason:            new(metav1.StatusReasonForbidden),
		}},
	})
}
