package attack

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// secretReader is a package that reads a Secret that the resource names.
const secretReader = `
#Spec: {secret: string, text: string | *"hello"}
inputs: credentials: {apiVersion: "v1", kind: "Secret", name: cr.spec.secret}
components: greeting: {
	requires: there: inputs.credentials.object.type == "Opaque"
	objects: map: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: cr.metadata.name
		data: text: cr.spec.text
	}
}
`

// TestAttackASecretOfThousandsOfValuesHoldsNobodyUp: all that a reconcile says is searched for the values of the Secrets that it has
// read. A Secret of a megabyte has 30,000 of them, and 20 resources that read it held another namespace up for 25 seconds.
func TestAttackASecretOfThousandsOfValuesHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "manyvalues", secretReader)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	far := s.OtherNamespace()
	secrets := harness.Rule("", harness.AllVerbs, "secrets")
	mallory, bob := s.Tenant("mallory", s.Namespace, things(p), secrets), s.Tenant("bob", far, things(p), secrets)
	secret := func(namespace string, values int) *unstructured.Unstructured {
		u := harness.Object("v1", "Secret", namespace, "credentials")
		data := map[string]any{}
		for i := range values {
			data[fmt.Sprint("k", i)] = fmt.Sprintf("%08x", i*7919)
		}
		u.Object["stringData"] = data
		return u
	}
	bob.Create(secret(far, 1))
	large := mallory.Create(secret(s.Namespace, 30_000))
	for i := range 20 {
		mallory.Create(p.Thing(s, fmt.Sprint("shop-", i), map[string]any{"secret": "credentials"}))
	}
	for i := range 3 {
		if err := mallory.Patch(large, map[string]any{"stringData": map[string]any{"k0": fmt.Sprint("changed-", i)}}); err != nil {
			t.Fatal(err)
		}
		cr := p.Thing(s, fmt.Sprint("his-", i), map[string]any{"secret": "credentials"})
		cr.SetNamespace(far)
		began := time.Now()
		s.ExpectResourceReady(bob.Create(cr))
		took := time.Since(began)
		t.Logf("resource %d of bob is Ready after %s", i, harness.Elapsed(began))
		if took > machine.Limit(15*time.Second) {
			t.Errorf("resource %d of bob is Ready after %s", i, took)
		}
	}
}

// TestAttackAFinalizerThatIsRemovedComesBack: a tenant may write the finalizers of their resources. Without that of the engine, a
// deletion ran no hook of the platform, and left the objects behind that no owner reference reaches.
func TestAttackAFinalizerThatIsRemovedComesBack(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "unfinalized", platformBody)
	s.StartOperator(p.Dir, harness.Alone)
	mallory := s.Tenant("mallory", s.Namespace, things(p))
	cr := mallory.Create(p.Thing(s, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	s.WaitUntilIdle() // no other event has it written again
	without := map[string]any{"metadata": map[string]any{"finalizers": nil}}
	if err := mallory.Patch(cr, without); err != nil {
		t.Fatal(err)
	}
	s.ExpectObject(cr, "to have the finalizer again", func(u *unstructured.Unstructured) error {
		if len(u.GetFinalizers()) == 0 {
			return harness.ErrNotYet
		}
		return nil
	})
	if err := mallory.Client.Delete(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	s.ExpectObject(cr, "to wait for its hook", func(*unstructured.Unstructured) error {
		if len(s.List("batch/v1", "Job")) == 0 {
			return harness.ErrNotYet
		}
		return nil
	})
	s.Patch(cr, without)
}
