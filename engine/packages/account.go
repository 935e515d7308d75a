package packages

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
)

// errNoNamespace says that an account has no namespace.
var errNoNamespace = errors.New("spec.serviceAccountNamespace is not set, and the namespace of the operator is not known")

// accountOf returns the ServiceAccount that a Package names, or none. It reads no more than that of the spec: what else is
// wrong there must not let the process act with its own rights instead. The default namespace is that of the operator.
func accountOf(u *unstructured.Unstructured, operatorNamespace string) (object.Account, error) {
	name, _, err := unstructured.NestedString(u.Object, "spec", "serviceAccountName")
	namespace, _, wrong := unstructured.NestedString(u.Object, "spec", "serviceAccountNamespace")
	if err := errors.Join(err, wrong); err != nil {
		return object.Account{}, fmt.Errorf("package %s: reading the spec: %w", u.GetName(), err)
	}
	switch {
	case name == "" && namespace == "":
		return object.Account{}, nil
	case namespace == "" && operatorNamespace == "":
		return object.Account{}, fmt.Errorf("package %s: %w", u.GetName(), errNoNamespace)
	case namespace == "":
		namespace = operatorNamespace
	}
	out := object.Account{Namespace: namespace, Name: name}
	if err := out.Check(); err != nil {
		return object.Account{}, fmt.Errorf("package %s: %w", u.GetName(), err)
	}
	return out, nil
}

// Accounts sets the account that sends the requests for custom resources; controller.Manager does.
type Accounts interface {
	// ActAs says as which ServiceAccount requests for the resources of a kind are sent, before its controller begins.
	ActAs(kind schema.GroupKind, account object.Account)
	// AccountProblem returns why the account of a kind that is served cannot be used, or what the operator lacks without one, or "".
	AccountProblem(kind schema.GroupKind) string
}

// actAsDefined sets the account that tears down the resources of kinds that a Package has defined and does not serve.
func (r *Reconciler) actAsDefined(ctx context.Context, p Package) error {
	kinds, err := r.Examiner.Defined(ctx, p.Name)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if r.Server.ServedBy(kind.GroupKind()) == "" {
			r.Accounts.ActAs(kind.GroupKind(), p.account)
		}
	}
	return nil
}

// useAccount says what is wrong with the account of a Package that is served, or with the rights of the operator, unless something else is.
func (r *Reconciler) useAccount(s *state, out *result) {
	if s.served == nil || out.problem != nil {
		return
	}
	if wrong := r.Accounts.AccountProblem(s.served.GroupVersionKind().GroupKind()); wrong != "" {
		out.problem = &problem{stage: serving, reason: ReasonAccountRefused, message: wrong}
		if s.account == (object.Account{}) {
			out.problem.reason = ReasonRightsMissing
		}
	}
}
