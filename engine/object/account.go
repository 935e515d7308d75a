package object

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

// An Account is a ServiceAccount. The zero value is none.
type Account struct{ Namespace, Name string }

// ParseAccount reads namespace/name.
func ParseAccount(text string) (Account, error) {
	namespace, name, ok := strings.Cut(text, "/")
	out := Account{namespace, name}
	if !ok {
		return Account{}, fmt.Errorf("%q is not namespace/name", text)
	}
	return out, out.Check()
}

// Check errors if an API server would reject a ServiceAccount of this name. The name becomes part of a user name, in
// which a colon would make it the name of another account.
func (a Account) Check() error {
	if wrong := validation.ValidateNamespaceName(a.Namespace, false); len(wrong) > 0 {
		return fmt.Errorf("the namespace %q of a ServiceAccount: %s", a.Namespace, wrong[0])
	}
	if wrong := validation.ValidateServiceAccountName(a.Name, false); len(wrong) > 0 {
		return fmt.Errorf("the name %q of a ServiceAccount: %s", a.Name, wrong[0])
	}
	return nil
}

// String returns namespace/name, or "" for none.
func (a Account) String() string {
	if a == (Account{}) {
		return ""
	}
	return a.Namespace + "/" + a.Name
}

// User returns the name by which an API server knows who acts as the account.
func (a Account) User() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }
