package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// terminationLimit is how long a namespace or a definition may take to go.
const terminationLimit = time.Minute

func TestG3NamespaceGoesWithEverythingInIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	for _, name := range []string{"one", "two", "three"} {
		s.create(s.webapp(name, everything()))
	}
	for _, name := range []string{"one", "two"} {
		s.expectReady(name)
	}
	s.deleteNamespace()
}

// deleteNamespace deletes the site's namespace, and expects that to end.
func (s *site) deleteNamespace() {
	s.t.Helper()
	ns := object("v1", "Namespace", "", s.namespace)
	s.delete(ns)
	took := within(s.t, terminationLimit, "the end of the namespace", func() error {
		u, err := read(s.t.Context(), ns)
		if err == nil && u != nil {
			err = fmt.Errorf("it is there: %v", field(u, "status", "conditions"))
		}
		return err
	})
	s.t.Logf("gone after %s", took.Round(time.Millisecond))
}

// guarded is a package with hooks before deletion, one of which reads a Secret.
const guarded = hooked + `
inputs: token: {apiVersion: "v1", kind: "Secret", name: "token"}
hooks: beforeDelete: revoke: objects: job: #Job & {_name: "revoke", _arg: inputs.token.object.metadata.name}
`

// TestG3NamespaceGoesAlsoWithHooksBeforeDeletion: nothing can be created in a namespace
// that is being deleted, and what hooks read goes with it.
func TestG3NamespaceGoesAlsoWithHooksBeforeDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "guarded", guarded)
	s.operate(p.dir)
	s.create(s.ref("Secret", "token"))
	s.expectAllReady(s.create(p.thing(s, "shop", map[string]any{})))
	s.deleteNamespace()
}

func TestB2ResourceThatIsCreatedAgainAtOnceGetsObjectsOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(writePackage(t, "greeting", strings.Replace(greeting, "greetings.example.com", "again.example.com", 1)), packageOf("webapp"))
	// One kind leaves its objects to garbage collection, the other has a finalizer.
	g := object("again.example.com/v1", "Greeting", s.namespace, "world")
	app := s.webapp("shop", map[string]any{"image": "nginx:1.25", "replicas": int64(1)})
	for _, row := range []struct {
		cr    *unstructured.Unstructured
		child *unstructured.Unstructured
	}{
		{g, s.ref("ConfigMap", "greeting-world")},
		{app, s.ref("Deployment", "shop")},
	} {
		s.create(row.cr.DeepCopy())
		old := s.expectAllReady(row.cr)
		s.delete(row.cr)
		began := time.Now()
		eventually(t, "another resource of the name", func() error {
			return world.admin.Create(t.Context(), row.cr.DeepCopy())
		})
		fresh := s.expectAllReady(row.cr)
		t.Logf("%s: ready %s after the deletion of the one before", row.cr.GetKind(), since(began))
		child := s.expectThat(row.child, "to exist", exists)
		if refs := child.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != fresh.GetUID() || fresh.GetUID() == old.GetUID() {
			t.Errorf("%s: its %s belongs to %v, not to %s", row.cr.GetKind(), child.GetKind(), refs, fresh.GetUID())
		}
		// It stays: garbage collection of the first one is over, or has nothing left.
		s.settle()
		if again := s.expectThat(row.child, "to exist", exists); again.GetUID() != child.GetUID() {
			t.Errorf("%s: its %s was replaced after it was Ready", row.cr.GetKind(), child.GetKind())
		}
	}
}

func TestH2DefinitionThatGoesAndReturnsNeedsNoRestart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := copyPackage(t, "webapp", map[string]string{`group: "example.com"`: `group: "passing.example.com"`})
	o := s.operate(p.dir)
	cr := object("passing.example.com/v1", "WebApp", s.namespace, "shop")
	cr.Object["spec"] = map[string]any{"image": "nginx:1.25", "replicas": int64(1)}
	s.create(cr.DeepCopy())
	s.expectAllReady(cr)
	definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "webapps.passing.example.com")
	s.delete(definition)
	took := within(t, terminationLimit, "the end of the definition", func() error {
		u, err := read(t.Context(), definition)
		if err == nil && u != nil {
			err = errNotYet
		}
		return err
	})
	t.Logf("the definition is gone after %s", took.Round(time.Millisecond))
	s.expectNone("Deployment")
	s.expectNone("Pod")

	position := o.log.len()
	if err := installCRDs(t.Context(), p.dir); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, "a resource of the kind that returned", func() error {
		return world.admin.Create(t.Context(), cr.DeepCopy())
	})
	s.expectAllReady(cr)
	t.Logf("ready %s after the definition returned", since(began))
	if n := strings.Count(o.log.from(position), "\n"); n > 100 {
		t.Errorf("the log grew by %d lines meanwhile", n)
	}
}
