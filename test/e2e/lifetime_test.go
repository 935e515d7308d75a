package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// terminationLimit is how long the deletion of a namespace or of a CustomResourceDefinition may take.
const terminationLimit = time.Minute

// rolesGoFirst is why the operator of a namespace that is deleted has no Roles in it; see docs/rights.md.
const rolesGoFirst = "the Roles of a namespace that is deleted may go before the resources in it"

func TestG3NamespaceGoesWithEverythingInIt(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.WithClusterRoles(rolesGoFirst)
	s.StartOperator(harness.PackageDir("webapp"))
	for _, name := range []string{"one", "two", "three"} {
		s.Create(s.Webapp(name, allFields()))
	}
	for _, name := range []string{"one", "two"} {
		s.ExpectReady(name)
	}
	s.deleteNamespace()
}

// deleteNamespace deletes the test's namespace, and waits until it is gone.
func (s *env) deleteNamespace() {
	s.T.Helper()
	ns := harness.Object("v1", "Namespace", "", s.Namespace)
	s.Delete(ns)
	took := harness.Within(s.T, terminationLimit, "the end of the namespace", func() error {
		u, err := harness.GetOrNil(s.T.Context(), ns)
		if err == nil && u != nil {
			err = fmt.Errorf("it is there: %v", harness.Field(u, "status", "conditions"))
		}
		return err
	})
	s.T.Logf("gone after %s", took.Round(time.Millisecond))
}

// guardedBody is a package with hooks before deletion, one of which reads a Secret.
const guardedBody = hookedBody + `
inputs: token: {apiVersion: "v1", kind: "Secret", name: "token"}
hooks: beforeDelete: revoke: objects: job: #Job & {_name: "revoke", _arg: inputs.token.object.metadata.name}
`

// TestG3NamespaceGoesAlsoWithHooksBeforeDeletion: nothing can be created in a namespace that is being
// deleted, and the inputs of hooks are deleted with it.
func TestG3NamespaceGoesAlsoWithHooksBeforeDeletion(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := newTestPackage(t, "guarded", guardedBody)
	s.WithClusterRoles(rolesGoFirst)
	s.StartOperator(p.Dir)
	s.Create(s.Ref("Secret", "token"))
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "shop", map[string]any{})))
	s.deleteNamespace()
}

func TestB2ResourceThatIsCreatedAgainAtOnceGetsObjectsOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.WritePackage(t, "greeting", strings.Replace(greetingPackage, "greetings.example.com", "again.example.com", 1)), harness.PackageDir("webapp"))
	// The objects of one kind are left to garbage collection; the other kind has a finalizer.
	g := harness.Object("again.example.com/v1", "Greeting", s.Namespace, "world")
	app := s.Webapp("shop", map[string]any{"image": "nginx:1.25", "replicas": int64(1)})
	for _, row := range []struct {
		cr    *unstructured.Unstructured
		child *unstructured.Unstructured
	}{
		{g, s.Ref("ConfigMap", "greeting-world")},
		{app, s.Ref("Deployment", "shop")},
	} {
		s.Create(row.cr.DeepCopy())
		old := s.ExpectResourceReady(row.cr)
		s.Delete(row.cr)
		began := time.Now()
		harness.Eventually(t, "another resource of the name", func() error {
			return harness.Suite.Admin.Create(t.Context(), row.cr.DeepCopy())
		})
		fresh := s.ExpectResourceReady(row.cr)
		t.Logf("%s: ready %s after the deletion of the one before", row.cr.GetKind(), harness.Elapsed(began))
		child := s.ExpectObject(row.child, "to exist", harness.Exists)
		if refs := child.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != fresh.GetUID() || fresh.GetUID() == old.GetUID() {
			t.Errorf("%s: its %s belongs to %v, not to %s", row.cr.GetKind(), child.GetKind(), refs, fresh.GetUID())
		}
		// It stays: garbage collection of the first one is over, or has nothing left.
		s.WaitUntilIdle()
		if again := s.ExpectObject(row.child, "to exist", harness.Exists); again.GetUID() != child.GetUID() {
			t.Errorf("%s: its %s was replaced after it was Ready", row.cr.GetKind(), child.GetKind())
		}
	}
}

func TestH2DefinitionThatGoesAndReturnsNeedsNoRestart(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := copyPackage(t, "webapp", map[string]string{`group: "example.com"`: `group: "passing.example.com"`})
	o := s.StartOperator(p.dir)
	cr := harness.Object("passing.example.com/v1", "WebApp", s.Namespace, "shop")
	cr.Object["spec"] = map[string]any{"image": "nginx:1.25", "replicas": int64(1)}
	s.Create(cr.DeepCopy())
	s.ExpectResourceReady(cr)
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "webapps.passing.example.com")
	s.Delete(definition)
	took := harness.Within(t, terminationLimit, "the end of the definition", func() error {
		u, err := harness.GetOrNil(t.Context(), definition)
		if err == nil && u != nil {
			err = harness.ErrNotYet
		}
		return err
	})
	t.Logf("the definition is gone after %s", took.Round(time.Millisecond))
	s.expectNone("Deployment")
	s.expectNone("Pod")

	position := o.Log.Len()
	if err := harness.InstallCRDs(t.Context(), p.dir); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	harness.Eventually(t, "a resource of the kind that returned", func() error {
		return harness.Suite.Admin.Create(t.Context(), cr.DeepCopy())
	})
	s.ExpectResourceReady(cr)
	t.Logf("ready %s after the definition returned", harness.Elapsed(began))
	if n := strings.Count(o.Log.From(position), "\n"); n > 100 {
		t.Errorf("the log grew by %d lines meanwhile", n)
	}
}
