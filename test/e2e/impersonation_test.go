package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// accountLimit is how soon it is said that an account cannot be used, and how soon all goes on once it can.
const accountLimit = 10 * time.Second

// keptBody renders two ConfigMaps in order, so that its resources have a finalizer.
const keptBody = plainBody + `
components: next: {
	dependsOn: web: {}
	objects: map: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "next-\(cr.metadata.name)"
	}
}
`

const secretBody = `
#Spec: text: string | *"a"

components: web: objects: token: {
	apiVersion: "v1"
	kind:       "Secret"
	metadata: name: "token-\(cr.metadata.name)"
	stringData: text: cr.spec.text
}
`

// impersonated are two packages of an operator whose own user may do no more than act as two accounts.
type impersonated struct {
	*env

	a, b         *testPackage
	roleA, roleB *unstructured.Unstructured
	own          *unstructured.Unstructured
	flags        []string
}

// newImpersonated returns them. The names are parts of groups, so they differ by test.
func newImpersonated(t *testing.T, name string) *impersonated {
	t.Helper()
	s := newEnv(t)
	x := &impersonated{env: s, a: newTestPackage(t, name+"a", keptBody), b: newTestPackage(t, name+"b", secretBody)}
	x.roleA = s.Account("for-a", append(x.a.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"))...)
	x.roleB = s.Account("for-b", append(x.b.RequiredRules(), harness.Rule("", harness.WriteVerbs, "secrets"))...)
	x.own = s.RestrictOperator(harness.Impersonate("for-a", "for-b"))
	s.GrantEverywhere(s.User, harness.Rule("apiextensions.k8s.io", []any{"get", "list"}, "customresourcedefinitions"))
	if err := harness.InstallCRDs(t.Context(), x.a.Dir, x.b.Dir); err != nil {
		t.Fatal(err)
	}
	s.InstallEngineDefinitions()
	x.flags = []string{"--crds", "leave", "--impersonate", x.a.Name + "=" + s.Namespace + "/for-a", "--impersonate", x.b.Name + "=" + s.Namespace + "/for-b"}
	return x
}

// start starts the operator of some packages.
func (x *impersonated) start(packages ...*testPackage) *harness.Operator {
	x.T.Helper()
	var args []string
	for _, p := range packages {
		args = append(args, p.Dir)
	}
	return x.StartOperator(append(args, x.flags...)...)
}

// expectWrites fails the test unless each write that was allowed was made as the right account: what is of package A by A, of B
// by B, and nothing by the operator itself. It returns how many there were by whom.
func (x *impersonated) expectWrites(from controlplane.AuditMark) map[string]int {
	x.T.Helper()
	count := map[string]int{}
	for _, e := range x.OperatorRequests(from) {
		want := ""
		switch {
		case strings.HasPrefix(e.Group, x.a.Name), e.Resource == "configmaps":
			want = x.AccountUser("for-a")
		case strings.HasPrefix(e.Group, x.b.Name), e.Resource == "secrets":
			want = x.AccountUser("for-b")
		case e.Resource == "events" && e.As != "", e.Resource == "selfsubjectaccessreviews":
			continue
		case slices.Contains([]string{"get", "list", "watch"}, e.Verb):
			continue // Patches and definitions, which the process reads itself, too
		}
		if e.As != want {
			x.T.Errorf("%s %s was sent as %q, not %q", e.Verb, e.RequestURI, e.As, want)
		}
		if e.Code < 300 {
			count[e.As]++
		}
	}
	return count
}

func TestF38J2PackagesOfOneOperatorActAsTheirAccounts(t *testing.T) {
	t.Parallel()
	x := newImpersonated(t, "imp")
	from := harness.MarkAudit(t)
	o := x.start(x.a, x.b)
	shop, desk := x.Create(x.a.Thing(x.Env, "shop", nil)), x.Create(x.b.Thing(x.Env, "desk", nil))
	x.ExpectResourceReady(shop)
	x.ExpectResourceReady(desk)
	x.Patch(shop, harness.Spec(map[string]any{"text": "b"}))
	x.ExpectData("web-shop", "text", "b")
	x.Delete(x.Ref("Secret", "token-desk"))
	x.ExpectObject(x.Ref("Secret", "token-desk"), "to be back", harness.Exists)
	count := x.expectWrites(from)
	if count[x.AccountUser("for-a")] == 0 || count[x.AccountUser("for-b")] == 0 {
		t.Errorf("the log has %v", count)
	}
	t.Logf("requests: %v", count)

	// The package of A is gone after a restart, and its resource is torn down by its account.
	o.Stop()
	from = harness.MarkAudit(t)
	x.start(x.b)
	x.Delete(shop)
	x.ExpectGone(shop)
	x.ExpectGone(x.Ref("ConfigMap", "web-shop"))
	count = x.expectWrites(from)
	if count[x.AccountUser("for-a")] == 0 {
		t.Errorf("nobody tore down as A: %v", count)
	}
	t.Logf("requests after the restart: %v", count)
}

func TestAnAccountHasNoRightsOfTheOtherAndNoneOfTheOperator(t *testing.T) {
	t.Parallel()
	x := newImpersonated(t, "impmix")
	// Both packages are served as A. The caches of the process may have what B may read, and the user of the operator may read Secrets.
	x.Patch(x.own, map[string]any{"rules": []any{harness.Impersonate("for-a", "for-b"), harness.Rule("", harness.WriteVerbs, "secrets"), harness.Rule(x.b.Name+".example.com", harness.WriteVerbs, "things", "things/status")}})
	x.Patch(x.roleA, map[string]any{"rules": slices.Concat(x.a.RequiredRules(), x.b.RequiredRules(), []any{harness.Rule("", harness.WriteVerbs, "configmaps")})})
	x.StartOperator(x.a.Dir, x.b.Dir, "--crds", "leave", "--impersonate", x.a.Name+"="+x.Namespace+"/for-a", "--impersonate", x.b.Name+"="+x.Namespace+"/for-a")
	desk := x.Create(x.b.Thing(x.Env, "desk", nil))
	t.Log(x.ExpectNotReady(desk, "KindUnreadable", "secrets is forbidden", x.AccountUser("for-a")))

	began := time.Now()
	x.Patch(x.roleA, map[string]any{"rules": slices.Concat(x.a.RequiredRules(), x.b.RequiredRules(), []any{harness.Rule("", harness.WriteVerbs, "configmaps", "secrets")})})
	x.ExpectResourceReady(desk)
	if took := time.Since(began); took > accountLimit {
		t.Errorf("it was ready %s after the permission came", took)
	}
}

func TestAPackageSaysThatItsAccountCannotBeUsedAndGoesOnOnceItCan(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator("--pull-secret-namespace", s.Namespace)
	p := s.NewPackageObject("impobject")
	p.HasAccount = true
	s.ExpectRefusals("the accounts lack rights at first, and later", "ServiceAccount")
	rules := append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"))
	role := s.Account("first")
	spec := p.InlineBody(plainBody).Object["spec"].(map[string]any)
	spec["serviceAccountName"] = "first"
	began := time.Now()
	p.Apply(p.Object(spec))
	p.Expect("Ready", "False", "ServiceAccountRefused", s.Namespace+"/first", `cannot list resource "things" in API group "impobject.example.com"`)
	t.Logf("said after %s", harness.Elapsed(began))
	began = time.Now()
	s.Patch(role, map[string]any{"rules": rules})
	p.Expect("Ready", "True", "Served")
	thing := s.Create(p.Thing(s.Env, "one", map[string]any{}))
	s.ExpectResourceReady(thing)
	if took := time.Since(began); took > accountLimit {
		t.Errorf("it took %s after the permission came", took)
	}

	// Another account takes over in the middle of it.
	second := s.Account("second", rules...)
	from := harness.MarkAudit(t)
	spec["serviceAccountName"] = "second"
	p.Apply(p.Object(spec))
	p.Expect("Ready", "True", "Served")
	s.Patch(thing, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("web-one", "text", "b")
	writers := map[string]int{}
	for _, e := range s.OperatorRequests(from).OfResource("configmaps").Writes() {
		writers[e.As]++
	}
	if len(writers) != 1 || writers[s.AccountUser("second")] == 0 {
		t.Errorf("the writers are %v", writers)
	}

	// The rights go while it runs.
	began = time.Now()
	s.Patch(second, map[string]any{"rules": []any{harness.Rule(p.Name+".example.com", []any{"get", "list", "watch"}, "things")}})
	s.Patch(thing, harness.Spec(map[string]any{"text": "c"}))
	p.Expect("Ready", "False", "ServiceAccountRefused", s.Namespace+"/second", `cannot patch resource "things/status"`)
	if took := time.Since(began); took > accountLimit {
		t.Errorf("it was said %s after the permission went", took)
	}
	s.Patch(second, map[string]any{"rules": rules})
	s.ExpectData("web-one", "text", "c")
	p.Expect("Ready", "True", "Served")

	// Its teardown without a version that can be served.
	from = harness.MarkAudit(t)
	s.Delete(thing)
	s.ExpectGone(thing)
	for _, e := range s.OperatorRequests(from).Writes() {
		if e.As == "" && e.Resource != "packages" {
			t.Errorf("%s %s was sent by the operator itself", e.Verb, e.RequestURI)
		}
	}
}

func TestAPackageMayNotNameAnAccountThatTheOperatorMayNotActAs(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := s.NewPackageObject("impsystem")
	definitions := []any{
		harness.Rule("apiextensions.k8s.io", []any{"get", "list", "create", "patch"}, "customresourcedefinitions"),
		harness.Rule("operetta.dev", harness.WriteVerbs, "packages", "packages/status", "packagerevisions", "overlays"),
	}
	s.InstallEngineDefinitions()
	own := s.RestrictOperator(harness.Impersonate("allowed"))
	s.GrantEverywhere(s.User, definitions...)
	s.Account("allowed", append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"))...)
	o := s.StartPackageOperator("--pull-secret-namespace", s.Namespace)
	from := harness.MarkAudit(t)
	spec := p.InlineBody(plainBody).Object["spec"].(map[string]any)
	spec["serviceAccountName"], spec["serviceAccountNamespace"] = "generic-garbage-collector", "kube-system"
	began := time.Now()
	p.Apply(p.Object(spec))
	p.Expect("Ready", "False", "ServiceAccountRefused", "kube-system/generic-garbage-collector", `it needs the permission to impersonate serviceaccounts "generic-garbage-collector" in namespace "kube-system"`)
	t.Logf("said after %s", harness.Elapsed(began))
	thing := s.Create(p.Thing(s.Env, "one", map[string]any{}))
	o.ExpectLog("the ServiceAccount of a package cannot be used", "generic-garbage-collector")
	for _, e := range s.OperatorRequests(from) {
		if e.Group == "impsystem.example.com" && e.Code < 300 {
			t.Errorf("%s %s was allowed (as %q)", e.Verb, e.RequestURI, e.As)
		}
	}
	// One that it may act as, and then not, and then again.
	spec["serviceAccountName"], spec["serviceAccountNamespace"] = "allowed", s.Namespace
	p.Apply(p.Object(spec))
	s.ExpectResourceReady(thing)
	began = time.Now()
	s.Patch(own, map[string]any{"rules": []any{harness.Impersonate("nobody")}})
	s.Patch(thing, harness.Spec(map[string]any{"text": "b"}))
	p.Expect("Ready", "False", "ServiceAccountRefused", s.Namespace+"/allowed", "permission to impersonate")
	if took := time.Since(began); took > accountLimit {
		t.Errorf("it was said after %s", took)
	}
	began = time.Now()
	s.Patch(own, map[string]any{"rules": []any{harness.Impersonate("allowed")}})
	s.ExpectData("web-one", "text", "b")
	p.Expect("Ready", "True", "Served")
	if took := time.Since(began); took > accountLimit {
		t.Errorf("it went on after %s", took)
	}
}

// A tenant writes resources, and none of that decides as whom the operator acts.
func TestAttackNobodyChoosesTheAccountByAResource(t *testing.T) {
	t.Parallel()
	x := newImpersonated(t, "impforged")
	from := harness.MarkAudit(t)
	x.start(x.a, x.b)
	cr := x.a.Thing(x.Env, "shop", nil)
	forged := x.Namespace + "/for-b"
	cr.SetAnnotations(map[string]string{"operetta.dev/service-account": forged, "operetta.dev/owner": "Thing." + x.b.Name + ".example.com " + x.Namespace + "/desk"})
	cr.SetLabels(map[string]string{"operetta.dev/service-account": "for-b", "operetta.dev/package": x.b.Name})
	cr = x.Create(cr)
	x.ExpectResourceReady(cr)
	// The inventory names a Secret, which A may not read or delete.
	victim := x.Ref("Secret", "victim")
	x.Create(victim)
	inventory := []any{map[string]any{"component": "web", "apiVersion": "v1", "kind": "Secret", "name": "victim"}}
	status := harness.Encode(t, map[string]any{"status": map[string]any{"inventory": inventory, "package": map[string]any{"name": x.b.Name}}})
	if err := harness.Suite.Admin.Status().Patch(t.Context(), cr.DeepCopy(), client.RawPatch(types.MergePatchType, status)); err != nil {
		t.Fatal(err)
	}
	x.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	x.Delete(cr)
	x.WaitUntilIdle()
	x.ExpectObject(victim, "to be there", harness.Exists)
	for _, e := range x.OperatorRequests(from).OfResource("secrets") {
		if e.As != x.AccountUser("for-b") && e.Code < 300 {
			t.Errorf("%s %s was allowed as %q", e.Verb, e.RequestURI, e.As)
		}
		if e.As == x.AccountUser("for-b") && (e.Name == "victim" || e.Verb == "delete") {
			t.Errorf("%s %s was sent as B because of a resource of A", e.Verb, e.RequestURI)
		}
	}
}
