package e2e

import (
	"strings"
	"testing"
	"time"

	"operetta.dev/test/harness"
)

func TestIngressIsCreatedAndDeletedAsItIsSwitchedOnAndOff(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.ExpectReady("shop")
	for range 2 {
		from, began := harness.MarkAudit(t), time.Now()
		s.Patch(cr, harness.Spec(map[string]any{"ingress": map[string]any{"enabled": true, "host": "shop.example.com"}}))
		s.ExpectReady("shop")
		s.Get("Ingress", "shop")
		t.Logf("on: ready after %s; writes: %s", harness.Elapsed(began), s.OperatorRequests(from).Mutating())

		from, began = harness.MarkAudit(t), time.Now()
		s.Patch(cr, harness.Spec(map[string]any{"ingress": map[string]any{"enabled": false}}))
		got := s.ExpectReady("shop")
		if u, err := s.Lookup("Ingress", "shop"); u != nil || err != nil {
			t.Errorf("Ready, but the Ingress exists (error %v)", err)
		}
		if state := harness.Component(got, "ingress"); state["state"] != "Excluded" {
			t.Errorf("the component is %v", state)
		}
		t.Logf("off: ready after %s; writes: %s", harness.Elapsed(began), s.OperatorRequests(from).Mutating())
	}
	s.ExpectEvent("shop", "Deleted", "Ingress "+s.Namespace+"/shop")
}

func TestF1ComponentWaitsForItsDependencyAndSaysForWhat(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", map[string]any{
		"image": "nginx:1.25", "replicas": int64(2),
		// No node has as many CPUs, so the pods stay pending.
		"resources": map[string]any{"cpu": "640"},
		"ingress":   map[string]any{"enabled": true},
	}))
	message := s.ExpectNotReady(cr, "NotReady", "web: ", "verify.available", "web.cue:", "is 0, wanted >= 2")
	t.Logf("Ready: %s", message)
	waiting := harness.Component(s.Get("WebApp", "shop"), "ingress")
	t.Logf("ingress: %v", waiting)
	text, _ := waiting["message"].(string)
	if waiting["state"] != "Waiting" || !harness.ContainsAll(text, []string{"waiting for web to be verified", "verify.available", "web.cue:", "is 0, wanted >= 2"}) {
		t.Errorf("the component ingress is %v", waiting)
	}
	if u, err := s.Lookup("Ingress", "shop"); u != nil || err != nil {
		t.Errorf("the Ingress exists before the servers serve (error %v)", err)
	}
	// A dependency that only orders the creation does not wait for readiness.
	s.ExpectObject(s.Ref("PodDisruptionBudget", "shop"), "to exist", harness.Exists)

	s.Patch(cr, harness.Spec(map[string]any{"resources": map[string]any{"cpu": "100m"}}))
	s.ExpectReady("shop")
	s.Get("Ingress", "shop")
}

// foreignResourcePackage is a package that renders a custom resource of another operator.
const foreignResourcePackage = `package front

import "operetta.dev/schemas/operator"

operator.#Controller

group: "front.example.com"
kind:  "Front"
versions: v1: spec: {}
cr: _

components: route: {
	objects: route: {
		apiVersion: "late.example.com/v1"
		kind:       "Greeting"
		metadata: name: cr.metadata.name
		spec: text: "hello"
	}
	policy: route: verify: "exists" // nobody serves it here
}
components: config: objects: configmap: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: kind: "front"
}
`

// kindLimit is how soon an object is created after its CustomResourceDefinition has appeared.
const kindLimit = 10 * time.Second

func TestH1KindWhoseDefinitionAppearsLaterIsAwaited(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.WritePackage(t, "front", foreignResourcePackage))
	cr := harness.Object("front.example.com/v1", "Front", s.Namespace, "shop")
	cr.Object["spec"] = map[string]any{}
	s.Create(cr)
	t.Log(s.ExpectNotReady(cr, "KindNotServed", "route: ", "late.example.com/v1 Greeting"))
	// F4: components that do not need the kind are reconciled.
	s.ExpectObject(s.Ref("ConfigMap", "shop"), "to exist", harness.Exists)

	late := harness.WritePackage(t, "greeting", strings.Replace(greetingPackage, "greetings.example.com", "late.example.com", 1))
	if err := harness.InstallCRDs(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	route := harness.Object("late.example.com/v1", "Greeting", s.Namespace, "shop")
	took := harness.Within(t, kindLimit, "the object of the kind that appeared", func() error {
		u, err := harness.GetOrNil(t.Context(), route)
		if err == nil && u == nil {
			err = harness.ErrNotYet
		}
		return err
	})
	t.Logf("applied %s after its definition", took.Round(time.Millisecond))
	s.ExpectResourceReady(cr)
	s.Delete(route)
	s.ExpectObject(route, "to return", harness.Exists)
}
