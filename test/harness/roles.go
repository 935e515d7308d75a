package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UnderPrintedRoles has operators that start later act under exactly the roles that operetta prints for them, also where their
// packages are of the test. It evaluates each of those once more, which is a tenth of what a short test takes, so that the roles of
// packages of the repository are printed once for all tests, and only some tests ask for those of their own.
func (s *Env) UnderPrintedRoles() { s.printed = true }

// As returns the environment of another process of the test, with a user of its own, by whom the audit log tells it from others.
func (s *Env) As(name string) *Env {
	s.T.Helper()
	out := *s
	out.User += ":" + name
	out.administer()
	return &out
}

// administer gives the user of the environment the credentials of an administrator.
func (s *Env) administer() {
	s.T.Helper()
	var err error
	if s.administrator, err = Suite.ControlPlane.KubeconfigFor(s.User, "system:masters"); err != nil {
		s.T.Fatal(err)
	}
	s.Kubeconfig = s.administrator
}

// ActAs has operators of the test, and its commands, act as a user of some groups whose rights the test itself grants.
func (s *Env) ActAs(user string, groups ...string) {
	s.T.Helper()
	s.User = user
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

// group is whose members the operators of the test are, and what has their roles. The processes of a test share it, as the pods of a
// Deployment share a service account.
func (s *Env) group() string { return "operators:" + s.Namespace }

// OperatorKubeconfig returns the credentials of operators that act under the roles that operetta prints if the test has asked for that, and
// its own otherwise.
func (s *Env) OperatorKubeconfig() string {
	s.T.Helper()
	if !s.printed || s.Kubeconfig != s.administrator {
		return s.Kubeconfig
	}
	file, err := Suite.ControlPlane.KubeconfigFor(s.User, s.group())
	if err != nil {
		s.T.Fatal(err)
	}
	return file
}

// ReachBy has operators that start later reach the API server by a kubeconfig of the test, which acts by OperatorKubeconfig.
func (s *Env) ReachBy(kubeconfig string) { s.Kubeconfig, s.proxied = kubeconfig, kubeconfig }

// grantFor grants what operetta prints for an operator with some arguments, and returns the credentials by which it has that and nothing
// else. They are those of the environment if the operator acts under no such roles, because the test has chosen others, for example.
func (s *Env) grantFor(args []string) string {
	s.T.Helper()
	chosen := s.Kubeconfig != s.administrator && s.Kubeconfig != s.proxied
	// Which roles Packages take is not known when their operator starts. The tests of test/rights grant both.
	apart := slices.Contains(args, "--packages-from-cluster")
	ofTest := !s.printed && (s.Kubeconfig == s.proxied || slices.ContainsFunc(parseArguments(args).packages, isOfTest))
	if chosen || apart || ofTest {
		return s.Kubeconfig
	}
	s.grantPrintedRoles(args)
	if s.Kubeconfig == s.proxied {
		return s.Kubeconfig
	}
	within := *s
	within.UnderPrintedRoles()
	return within.OperatorKubeconfig()
}

// placeholder stands for the namespace of a test in roles that several tests share.
const placeholder = "operetta-test-namespace"

// printedRoles are the roles of packages of the repository, by the command that prints them, which takes as long as an operator
// takes to start.
var printedRoles sync.Map

// installations numbers the roles that tests create, because one test may start several operators.
var installations atomic.Int32

// grantPrintedRoles grants exactly what operetta prints for an operator with some arguments, and waits until it counts. What the test has
// granted for operators before stays, as it does where somebody applies the roles of another version.
func (s *Env) grantPrintedRoles(args []string) {
	s.T.Helper()
	prefix := fmt.Sprintf("%s-%d", s.Namespace, installations.Add(1))
	rules := map[string][]any{}
	bind := func(name, namespace, role string) {
		kind := map[bool]string{true: "ClusterRole", false: "Role"}[namespace == ""]
		u := Object(rbacAPI+"/v1", kind+"Binding", namespace, name)
		u.Object["roleRef"] = map[string]any{"apiGroup": rbacAPI, "kind": kind, "name": role}
		u.Object["subjects"] = []any{map[string]any{"apiGroup": rbacAPI, "kind": "Group", "name": s.group()}}
		s.createForOperators(u)
	}
	for _, u := range Decode(s.T, s.print(commandOf(s.Namespace, args))) {
		switch u.GetKind() {
		case "Role", "ClusterRole":
			of, _ := u.Object["rules"].([]any)
			rules[u.GetNamespace()] = append(rules[u.GetNamespace()], of...)
		case "RoleBinding", "ClusterRoleBinding":
			role, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
			if role != u.GetName() { // the package binds a role that it does not render
				bind(prefix+":"+role, u.GetNamespace(), role)
			}
		}
	}
	for namespace, all := range rules {
		role := Object(rbacAPI+"/v1", map[bool]string{true: "ClusterRole", false: "Role"}[namespace == ""], namespace, prefix)
		role.Object["rules"] = all
		s.createForOperators(role)
		bind(prefix, namespace, prefix)
		s.awaitRule(namespace, all[0])
	}
}

// createForOperators creates an object that lives as long as the operators of the test.
func (s *Env) createForOperators(u *unstructured.Unstructured) {
	s.T.Helper()
	s.Create(u)
	if u.GetNamespace() == s.Namespace {
		return // it costs nobody anything
	}
	s.T.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		defer cancel()
		if err := Suite.Admin.Delete(ctx, u); client.IgnoreNotFound(err) != nil {
			s.T.Logf("removing %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	})
}

// awaitRule waits until the API server grants what a rule does: it learns of roles by watches, and refuses until then.
func (s *Env) awaitRule(namespace string, rule any) {
	s.T.Helper()
	first := func(field string) string {
		of, _ := rule.(map[string]any)
		all, _, _ := unstructured.NestedStringSlice(of, field)
		if len(all) == 0 {
			return ""
		}
		return all[0]
	}
	resource, sub, _ := strings.Cut(first("resources"), "/")
	Eventually(s.T, "the roles of the operator in "+namespace, func() error {
		review := Object("authorization.k8s.io/v1", "SubjectAccessReview", "", "")
		review.Object["spec"] = map[string]any{"user": s.User, "groups": []any{s.group()}, "resourceAttributes": map[string]any{
			"namespace": namespace, "verb": first("verbs"), "group": first("apiGroups"), "resource": resource, "subresource": sub, "name": first("resourceNames"),
		}}
		if err := Suite.Admin.Create(s.T.Context(), review); err != nil {
			return err
		}
		if Field(review, "status", "allowed") != true {
			return ErrNotYet
		}
		return nil
	})
}

// print runs a command that prints manifests. What it prints for packages of the repository is kept for other tests.
func (s *Env) print(command []string) []byte {
	s.T.Helper()
	run := func() ([]byte, error) {
		cmd := exec.Command(Suite.Operetta, command...)
		cmd.Dir = Suite.Root
		cmd.Env = append(os.Environ(), "GOGC=off") // it takes a fraction of a second
		return cmd.Output()
	}
	once := run
	if !slices.ContainsFunc(command, isOfTest) {
		command = replaced(command, s.Namespace, placeholder)
		kept, _ := printedRoles.LoadOrStore(strings.Join(command, "\x00"), sync.OnceValues(run))
		once, _ = kept.(func() ([]byte, error))
	}
	out, err := once()
	if err != nil {
		s.T.Fatalf("operetta %s: %v%s", strings.Join(command, " "), err, StderrOf(err))
	}
	return bytes.ReplaceAll(out, []byte(placeholder), []byte(s.Namespace))
}

// isOfTest reports whether an argument is a folder of packages that is not of the repository.
func isOfTest(arg string) bool {
	return filepath.IsAbs(arg) && !strings.HasPrefix(arg, Suite.Root+string(filepath.Separator))
}

// replaced returns texts with a part replaced.
func replaced(texts []string, part, by string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, strings.ReplaceAll(text, part, by))
	}
	return out
}
