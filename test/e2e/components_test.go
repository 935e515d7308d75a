package e2e

import (
	"strings"
	"testing"
	"time"
)

func TestIngressIsCreatedAndDeletedAsItIsSwitchedOnAndOff(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.expectReady("shop")
	for range 2 {
		from, began := mark(t), time.Now()
		s.patch(cr, spec(map[string]any{"ingress": map[string]any{"enabled": true, "host": "shop.example.com"}}))
		s.expectReady("shop")
		s.get("Ingress", "shop")
		t.Logf("on: ready after %s; writes: %s", since(began), s.operatorRequests(from).mutating())

		from, began = mark(t), time.Now()
		s.patch(cr, spec(map[string]any{"ingress": map[string]any{"enabled": false}}))
		got := s.expectReady("shop")
		if u, err := s.find("Ingress", "shop"); u != nil || err != nil {
			t.Errorf("Ready, but the Ingress exists (error %v)", err)
		}
		if state := component(got, "ingress"); state["state"] != "Excluded" {
			t.Errorf("the component is %v", state)
		}
		t.Logf("off: ready after %s; writes: %s", since(began), s.operatorRequests(from).mutating())
	}
	s.expectEvent("shop", "Deleted", "Ingress "+s.namespace+"/shop")
}

func TestF1ComponentWaitsForItsDependencyAndSaysForWhat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", map[string]any{
		"image": "nginx:1.25", "replicas": int64(2),
		// More than any node has: the pods stay pending.
		"resources": map[string]any{"cpu": "640"},
		"ingress":   map[string]any{"enabled": true},
	}))
	message := s.expectNotReady(cr, "NotReady", "web: ", "verify.available", "web.cue:", "is 0, wanted >= 2")
	t.Logf("Ready: %s", message)
	waiting := component(s.get("WebApp", "shop"), "ingress")
	t.Logf("ingress: %v", waiting)
	text, _ := waiting["message"].(string)
	if waiting["state"] != "Waiting" || !containsAll(text, []string{"waiting for web to be verified", "verify.available", "web.cue:", "is 0, wanted >= 2"}) {
		t.Errorf("the component ingress is %v", waiting)
	}
	if u, err := s.find("Ingress", "shop"); u != nil || err != nil {
		t.Errorf("the Ingress exists before the servers serve (error %v)", err)
	}
	// An order of creation alone does not wait.
	s.expectThat(s.ref("PodDisruptionBudget", "shop"), "to exist", exists)

	s.patch(cr, spec(map[string]any{"resources": map[string]any{"cpu": "100m"}}))
	s.expectReady("shop")
	s.get("Ingress", "shop")
}

// front is a package that renders a custom resource of somebody else's.
const front = `package front

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

// kindLimit is how soon a kind is used whose definition appears.
const kindLimit = 10 * time.Second

func TestH1KindWhoseDefinitionAppearsLaterIsAwaited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(writePackage(t, "front", front))
	cr := object("front.example.com/v1", "Front", s.namespace, "shop")
	cr.Object["spec"] = map[string]any{}
	s.create(cr)
	t.Log(s.expectNotReady(cr, "KindNotServed", "route: ", "late.example.com/v1 Greeting"))
	// F4: what does not need the kind goes on.
	s.expectThat(s.ref("ConfigMap", "shop"), "to exist", exists)

	late := writePackage(t, "greeting", strings.Replace(greeting, "greetings.example.com", "late.example.com", 1))
	if err := installCRDs(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	route := object("late.example.com/v1", "Greeting", s.namespace, "shop")
	took := within(t, kindLimit, "the object of the kind that appeared", func() error {
		u, err := read(t.Context(), route)
		if err == nil && u == nil {
			err = errNotYet
		}
		return err
	})
	t.Logf("applied %s after its definition", took.Round(time.Millisecond))
	s.expectAllReady(cr)
	s.delete(route)
	s.expectThat(route, "to return", exists)
}
