package rights

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// restsFor is how long an operator at rest is watched.
const restsFor = 10 * time.Second

// several is an operator of several namespaces under the roles that operetta rbac prints for it.
type several struct {
	*harness.Env

	p     *harness.TestPackage
	roles []byte
	// served are the namespaces that it is to serve.
	served []string
}

// newSeveral prints the roles of an operator, and applies those that are not in some namespaces.
func newSeveral(t *testing.T, s *harness.Env, name string, without []string, served ...string) *several {
	t.Helper()
	out := &several{Env: s, p: harness.NewTestPackage(t, name, limitedBody), served: served}
	out.roles = operetta(t, "rbac", out.p.Dir, "--namespace", strings.Join(served, ","), "--service-account", s.Namespace+"/operator", "--leader-election-id=")
	out.grant(t, func(namespace string) bool { return !slices.Contains(without, namespace) })
	s.ActAsAccount(s.Namespace + "/operator")
	for _, namespace := range served {
		if !slices.Contains(without, namespace) {
			out.expectGranted(t, namespace)
		}
	}
	return out
}

// expectGranted waits until the API server has seen the roles of a namespace: it learns of them by watches, and refuses until then.
func (s *several) expectGranted(t *testing.T, namespace string) {
	t.Helper()
	s.expectAllowed(t, namespace, true)
}

// expectAllowed waits until the operator may do what the roles of a namespace allow, or may not.
func (s *several) expectAllowed(t *testing.T, namespace string, want bool) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("the roles in %s to count: %v", namespace, want), func() error {
		review := harness.Object("authorization.k8s.io/v1", "SubjectAccessReview", "", "")
		review.Object["spec"] = map[string]any{"user": s.User, "resourceAttributes": map[string]any{
			"namespace": namespace, "verb": "list", "group": "operetta.dev", "resource": "patches",
		}}
		if err := harness.Suite.Admin.Create(t.Context(), review); err != nil {
			return err
		}
		if harness.Field(review, "status", "allowed") != want {
			return harness.ErrNotYet
		}
		return nil
	})
}

// grant applies the roles of some namespaces.
func (s *several) grant(t *testing.T, in func(namespace string) bool) {
	t.Helper()
	var text []string
	for _, u := range objectsIn(t, s.roles) {
		if in(u.GetNamespace()) {
			text = append(text, string(harness.Encode(t, u.Object)))
		}
	}
	apply(t, []byte(strings.Join(text, "\n---\n")))
}

// grantIn applies the roles of a namespace.
func (s *several) grantIn(t *testing.T, namespace string) {
	t.Helper()
	s.grant(t, func(one string) bool { return one == namespace })
}

// start starts the operator.
func (s *several) start() *harness.Operator {
	s.T.Helper()
	return s.StartRestrictedOperator(s.p, "--namespace="+strings.Join(s.served, ","))
}

// namespace creates a namespace with the input of the package.
func (s *several) namespace(name string) {
	s.T.Helper()
	s.Create(harness.Object("v1", "Namespace", "", name))
	s.token(name)
}

func (s *several) token(namespace string) {
	s.T.Helper()
	s.Create(harness.Object("v1", "Secret", namespace, "token"))
}

// thing creates a resource in a namespace.
func (s *several) thing(namespace string) *unstructured.Unstructured {
	s.T.Helper()
	u := s.p.Thing(s.Env, "shop", map[string]any{})
	u.SetNamespace(namespace)
	return s.Create(u)
}

func TestTwoOfThreeNamespacesAreServedUnderExactlyTheRolesThatArePrinted(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := harness.NewEnv(t)
	far, third := s.Namespace+"-far", s.Namespace+"-third"
	o := newSeveralIn(t, s, "twoofthree", []string{far, third}, s.Namespace, far)
	if err := harness.InstallCRDs(t.Context(), o.p.Dir); err != nil {
		t.Fatal(err)
	}
	others := o.thing(third)
	from := harness.MarkAudit(t)
	o.start()
	here, there := o.thing(s.Namespace), o.thing(far)
	s.ExpectResourceReady(here)
	s.ExpectResourceReady(there)
	s.Patch(there, harness.Spec(map[string]any{"text": "b", "extra": false}))
	s.ExpectObject(harness.Object("v1", "ConfigMap", far, "settings-shop"), "to have text: b", func(u *unstructured.Unstructured) error {
		if got := harness.Field(u, "data", "text"); got != "b" {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
	s.ExpectGone(harness.Object("v1", "ServiceAccount", far, "extra-shop"))

	s.WaitUntilIdle()
	rest := harness.MarkAudit(t)
	began := time.Now()
	harness.Eventually(t, "some time to pass", func() error {
		if time.Since(began) < restsFor {
			return harness.ErrNotYet
		}
		return nil
	})
	if asked := s.OperatorRequests(rest).WithoutListsAndWatches().Filter(func(e controlplane.AuditEvent) bool { return !harness.IsEvent(e) }); len(asked) > 0 {
		t.Errorf("at rest it asked for %s", asked)
	}

	s.Delete(there)
	s.ExpectGone(there)
	s.ExpectGone(harness.Object("v1", "Service", far, "web-shop"))
	requests := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool {
		return e.Group != "example.com" && (!strings.HasSuffix(e.Group, ".example.com") || e.Group == o.p.Name+".example.com") // kinds of other tests
	})
	t.Logf("requests: %s", requests)
	for _, e := range requests {
		switch {
		case strings.Contains(e.RequestURI, "/namespaces/"+third):
			t.Errorf("it asked about the third namespace: %s %s", e.Verb, e.RequestURI)
		case e.Code == 403:
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		case !strings.Contains(e.RequestURI, "/namespaces/") && e.Resource != "customresourcedefinitions" && !strings.HasPrefix(e.Resource, "selfsubject"):
			t.Errorf("it asked about all namespaces: %s %s", e.Verb, e.RequestURI)
		}
	}
	if u := s.ExpectObject(others, "to exist", harness.Exists); u.Object["status"] != nil || len(u.GetFinalizers()) > 0 {
		t.Errorf("the resource in the third namespace was touched: %v", u.Object)
	}
}

// newSeveralIn is newSeveral in the namespace of the test and others that it creates.
func newSeveralIn(t *testing.T, s *harness.Env, name string, others []string, served ...string) *several {
	t.Helper()
	s.Create(harness.Object("v1", "Secret", s.Namespace, "token"))
	for _, other := range others {
		s.Create(harness.Object("v1", "Namespace", "", other))
		s.Create(harness.Object("v1", "Secret", other, "token"))
	}
	return newSeveral(t, s, name, nil, served...)
}

func TestANamespaceThatComesLaterIsServedThenAndOneThatGoesStopsNoOther(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := harness.NewEnv(t)
	late := s.Namespace + "-late"
	s.Create(harness.Object("v1", "Secret", s.Namespace, "token"))
	o := newSeveral(t, s, "comeslater", []string{late}, s.Namespace, late)
	operator := o.start()
	here := o.thing(s.Namespace)
	s.ExpectResourceReady(here)
	operator.ExpectLog("a kind cannot be read", "Thing", late)

	for _, round := range []string{"created", "created again"} {
		o.namespace(late)
		o.grantIn(t, late)
		there := o.thing(late)
		took := harness.Within(t, recoveredWithin, "the resource in the namespace that was "+round, func() error {
			u, err := harness.GetOrNil(t.Context(), there)
			if err != nil {
				return err
			}
			return harness.Ready(u)
		})
		t.Logf("ready %s after the namespace was %s", took.Round(time.Millisecond), round)
		s.Delete(there)
		s.ExpectGone(there)
		s.Delete(harness.Object("v1", "Namespace", "", late))
		s.ExpectGone(harness.Object("v1", "Namespace", "", late))
		s.Patch(here, harness.Spec(map[string]any{"text": round}))
		s.ExpectData("settings-shop", "text", round)
	}
}

func TestWhatIsMissingInOneNamespaceIsNamedAndStopsNoOther(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		// resource is what may not be watched there; "" is all of the roles.
		resource string
	}{
		"Everything": {"somebody forgot the namespace", ""},
		"AChild":     {"the resource is seen and says it", "services"},
		"TheParent":  {"no resource is seen, and the log says it", "things"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewEnv(t)
			far := s.Namespace + "-far"
			o := newSeveralIn(t, s, "missing"+strings.ToLower(name), []string{far}, s.Namespace, far)
			taken := o.take(t, far, row.resource)
			operator := o.start()
			there, here := o.thing(far), o.thing(s.Namespace)
			s.ExpectResourceReady(here)
			took := harness.Within(t, namedWithin, "the namespace to be named", func() error { return o.named(operator, there, row.resource) })
			t.Logf("%s: named after %s", row.reason, took.Round(time.Millisecond))
			s.Patch(here, harness.Spec(map[string]any{"text": "b"}))
			s.ExpectData("settings-shop", "text", "b")
			for _, u := range taken {
				apply(t, harness.Encode(t, u.Object), "--force-conflicts")
			}
			harness.Within(t, recoveredWithin, "the resource to be ready after the return of what was missing", func() error {
				u, err := harness.GetOrNil(t.Context(), there)
				if err != nil {
					return err
				}
				return harness.Ready(u)
			})
			if err := o.measured(operator, far, row.resource); err == nil {
				t.Error("the metric still says that the namespace is refused")
			}
		})
	}
}

// take takes the permission to watch a resource in a namespace away, or all roles for "". It returns what was taken.
func (s *several) take(t *testing.T, namespace, resource string) []*unstructured.Unstructured {
	t.Helper()
	var taken []*unstructured.Unstructured
	m := missing{verb: "watch", resource: resource}
	for _, u := range objectsIn(t, s.roles) {
		if u.GetKind() != "Role" || u.GetNamespace() != namespace {
			continue
		}
		role := harness.Object(u.GetAPIVersion(), u.GetKind(), namespace, u.GetName())
		rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
		switch {
		case resource == "":
			s.Delete(role)
		case m.isIn(u):
			s.Patch(role, map[string]any{"rules": m.without(t, rules)})
		default:
			continue
		}
		taken = append(taken, u)
	}
	if len(taken) == 0 {
		t.Fatalf("no role has watch %s", resource)
	}
	return taken
}

// named returns nil if the log names a namespace, or the condition of a resource that can be seen does.
func (s *several) named(o *harness.Operator, cr *unstructured.Unstructured, resource string) error {
	if resource != "services" {
		for line := range harness.Lines(o.Log.From(0), "a kind cannot be read") {
			if strings.Contains(line, "Thing") && strings.Contains(line, cr.GetNamespace()) {
				return s.measured(o, cr.GetNamespace(), resource)
			}
		}
		return harness.ErrNotYet
	}
	u, err := harness.GetOrNil(s.T.Context(), cr)
	if err != nil || u == nil {
		return errors.Join(err, harness.ErrNotYet)
	}
	c := harness.Condition(u, "Ready")
	if message, _ := c["message"].(string); c["reason"] != "KindUnreadable" || !strings.Contains(message, `in the namespace "`+cr.GetNamespace()+`"`) {
		return fmt.Errorf("Ready is %v", c)
	}
	return nil
}

// measured returns nil if a metric says that the resources in a namespace may not be read.
func (s *several) measured(o *harness.Operator, namespace, resource string) error {
	want := fmt.Sprintf("operetta_namespaces_refused{controller=%q,namespace=%q} 1", s.p.Controller(), namespace)
	if resource == "services" || !strings.Contains(o.Metrics(), want) {
		return fmt.Errorf("there is no metric %s", want)
	}
	return nil
}

// answer runs the binary under test, and returns all that it says. It may find differences.
func answer(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), harness.Suite.Operetta, args...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 2) {
		t.Fatalf("operetta %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestCommandsAnswerForTheNamespacesOfAnOperator(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	far, third := s.Namespace+"-far", s.Namespace+"-third"
	o := newSeveralIn(t, s, "answers", []string{far, third}, s.Namespace, far)
	if err := harness.InstallCRDs(t.Context(), o.p.Dir); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{s.Namespace, far, third} {
		o.thing(namespace)
	}
	config, err := harness.Suite.ControlPlane.KubeconfigFor("person", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"DryRun": {"run", o.p.Dir, "--dry-run=server"},
		"Shadow": {"run", o.p.Dir, "--shadow", "--timeout", "20s", "--until-same", "-o", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := answer(t, append(args, "--kubeconfig", config, "--namespace", s.Namespace, "--namespace", far)...)
			for namespace, want := range map[string]bool{s.Namespace: true, far: true, third: false} {
				if got := strings.Contains(out, namespace+"/") || strings.Contains(out, `"`+namespace+`"`); got != want {
					t.Errorf("it says something of %s: %v\n%s", namespace, got, out)
				}
			}
		})
	}
}
