package harness

import (
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rbacAPI = "rbac.authorization.k8s.io"

// WriteVerbs are the verbs that an operator needs for the objects that it writes.
var WriteVerbs = []any{"get", "list", "watch", "create", "patch", "update", "delete"}

// Rule allows verbs on resources of a group.
func Rule(group string, verbs []any, resources ...any) map[string]any {
	return map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": verbs}
}

// RequiredRules are the rules that an operator of a package needs besides those for the objects.
func (p *TestPackage) RequiredRules() []any {
	return []any{
		Rule(p.Name+".example.com", []any{"get", "list", "watch", "patch"}, "things"),
		Rule(p.Name+".example.com", []any{"patch"}, "things/status"),
		Rule("events.k8s.io", []any{"create", "patch"}, "events"),
	}
}

// Flags of an operator. Everywhere makes it serve all namespaces, and Alone makes it ignore resources of
// other packages, which belong to the operators of other tests.
const (
	Everywhere = "--namespace="
	Alone      = "--package-missing=leave"
)

// OtherNamespace creates a second namespace for the test, and returns its name.
func (s *Env) OtherNamespace() string {
	s.T.Helper()
	name := s.Namespace + "-far"
	s.Create(Object("v1", "Namespace", "", name))
	return name
}

// RestrictOperator replaces the rights of the test's user by rules in the test's namespace. It returns
// the role, which a test may change.
func (s *Env) RestrictOperator(rules ...any) *unstructured.Unstructured {
	s.T.Helper()
	role := s.grant("operator", s.Namespace, s.User, rules...)
	s.ActAs(s.User)
	return role
}

// AlsoMay gives the operators of the test that act as its account rights in its namespace that operetta rbac cannot know. The reason says why.
func (s *Env) AlsoMay(reason string, rules ...any) {
	s.T.Helper()
	s.T.Logf("the operators of this test may do more than operetta rbac prints: %s", reason)
	s.grant("also", s.Namespace, s.User, rules...)
}

// ActAs has operators of the test, and its commands, act as a user of some groups whose rights the test itself grants.
func (s *Env) ActAs(user string, groups ...string) {
	s.T.Helper()
	s.User, s.ownRights = user, true
	var err error
	if s.Kubeconfig, err = Suite.ControlPlane.KubeconfigFor(user, groups...); err != nil {
		s.T.Fatal(err)
	}
}

// ActAsAccount is ActAs for a service account, "namespace/name".
func (s *Env) ActAsAccount(account string) {
	s.T.Helper()
	s.ActAs("system:serviceaccount:"+strings.ReplaceAll(account, "/", ":"), "system:serviceaccounts")
}

// GrantEverywhere gives a user the rights of some rules in all namespaces, as long as the test runs.
func (s *Env) GrantEverywhere(user string, rules ...any) {
	s.T.Helper()
	role, binding := Object(rbacAPI+"/v1", "ClusterRole", "", s.Namespace), Object(rbacAPI+"/v1", "ClusterRoleBinding", "", s.Namespace)
	role.Object["rules"] = rules
	binding.Object["roleRef"] = map[string]any{"apiGroup": rbacAPI, "kind": "ClusterRole", "name": s.Namespace}
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": rbacAPI, "kind": "User", "name": user}}
	for _, u := range []*unstructured.Unstructured{role, binding} {
		s.Create(u)
		s.T.Cleanup(func() { RemoveForGood(s.T, u) })
	}
}

// Account creates a ServiceAccount with the rights of some rules in the namespace of the test, and returns the role.
func (s *Env) Account(name string, rules ...any) *unstructured.Unstructured {
	s.T.Helper()
	s.Create(s.Ref("ServiceAccount", name))
	return s.grant(name, s.Namespace, s.AccountUser(name), rules...)
}

// AccountUser returns the user that a ServiceAccount in the namespace of the test is.
func (s *Env) AccountUser(name string) string {
	return "system:serviceaccount:" + s.Namespace + ":" + name
}

// Impersonate is the rule by which a user may act as ServiceAccounts of the namespace.
func Impersonate(accounts ...any) map[string]any {
	out := Rule("", []any{"impersonate"}, "serviceaccounts")
	out["resourceNames"] = accounts
	return out
}

// grant creates a role and binds it to a user. It returns the role.
func (s *Env) grant(name, namespace, user string, rules ...any) *unstructured.Unstructured {
	s.T.Helper()
	role := Object(rbacAPI+"/v1", "Role", namespace, name)
	role.Object["rules"] = rules
	binding := Object(rbacAPI+"/v1", "RoleBinding", namespace, name)
	binding.Object["roleRef"] = map[string]any{"apiGroup": rbacAPI, "kind": "Role", "name": name}
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": rbacAPI, "kind": "User", "name": user}}
	s.Create(role)
	s.Create(binding)
	return role
}

// InstallEngineDefinitions installs the definitions of the engine's own kinds, as an administrator does for operators that may not.
func (s *Env) InstallEngineDefinitions() {
	s.T.Helper()
	EngineDefinitions.Lock()
	defer EngineDefinitions.Unlock() // also if the test ends here
	s.Kubectl("apply", "--server-side", "--force-conflicts", "-f", filepath.Join(Suite.Root, "config", "crd"))
}

// StartRestrictedOperator starts an operator that may not install definitions.
func (s *Env) StartRestrictedOperator(p *TestPackage, args ...string) *Operator {
	s.T.Helper()
	if err := InstallCRDs(s.T.Context(), p.Dir); err != nil {
		s.T.Fatal(err)
	}
	s.InstallEngineDefinitions()
	return s.StartOperator(append([]string{p.Dir, "--crds", "leave"}, args...)...)
}
