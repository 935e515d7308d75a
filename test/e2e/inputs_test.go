package e2e

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const reading = `
#Spec: region: string

inputs: {
	region: {apiVersion: "v1", kind: "ConfigMap", name: "region-\(cr.spec.region)"}
	tokens: {apiVersion: "v1", kind: "Secret", selector: token: cr.metadata.name}
}
components: web: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "web-\(cr.metadata.name)"
	data: region: inputs.region.object.data.name
}
components: tokens: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "tokens-\(cr.metadata.name)"
	data: {for name, secret in inputs.tokens.objects {(name): secret.data.value}}
}
`

func TestF3InputByNameIsAwaitedAndItsChangesReachOnlyWhoRefersToIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "byname", reading)
	o := s.operate(p.dir)
	one := s.create(p.thing(s, "one", map[string]any{"region": "north"}))
	two := s.create(p.thing(s, "two", map[string]any{"region": "south"}))
	t.Log(s.expectNotReady(one, "WaitingForValue", "web: ", "inputs.region.object"))
	s.create(s.configMap("region-south", map[string]any{"name": "S1"}))
	began := time.Now()
	north := s.create(s.configMap("region-north", map[string]any{"name": "N1"}))
	s.expectAllReady(one)
	t.Logf("ready %s after the input appeared", since(began))
	s.expectAllReady(two)
	s.expectData("web-one", "region", "N1")
	s.expectData("web-two", "region", "S1")
	s.settle()

	// A change reconciles who refers to it, once, and nobody else.
	s.onlyReconciles(o, p, 1, func() {
		s.patch(north, map[string]any{"data": map[string]any{"name": "N2"}})
		s.expectData("web-one", "region", "N2")
	})
	// Another reference: the old one has no effect any more, the new one has.
	s.patch(one, spec(map[string]any{"region": "south"}))
	s.expectData("web-one", "region", "S1")
	s.expectAllReady(one)
	s.settle()
	s.onlyReconciles(o, p, 0, func() { s.patch(north, map[string]any{"data": map[string]any{"name": "N3"}}) })
	s.patch(s.ref("ConfigMap", "region-south"), map[string]any{"data": map[string]any{"name": "S2"}})
	s.expectData("web-one", "region", "S2")
	s.expectData("web-two", "region", "S2")

	// F3: it goes, and what runs stays.
	before := s.get("ConfigMap", "web-one").GetResourceVersion()
	s.delete(s.ref("ConfigMap", "region-south"))
	s.expectNotReady(one, "WaitingForValue", "web: ", "inputs.region.object")
	if s.get("ConfigMap", "web-one").GetResourceVersion() != before {
		t.Error("the running object was changed as its input went")
	}
	for _, cr := range []*unstructured.Unstructured{one, two} {
		s.delete(cr)
		s.expectFinished(cr)
	}
	s.expectNoneOwned("ConfigMap")
}

// onlyReconciles does something and expects a number of reconciles of it.
func (s *site) onlyReconciles(o *operator, p *small, want int, act func()) {
	s.t.Helper()
	before := o.reconciles(p.controller())
	act()
	s.settle()
	// The object that is written for it wakes its owner once more.
	if got := o.reconciles(p.controller()) - before; got < want || got > 2*want {
		s.t.Errorf("there were %d reconciles, not about %d", got, want)
	}
}

// expectNoneOwned waits until no object of a kind has a mark of ownership.
func (s *site) expectNoneOwned(kind string) {
	s.t.Helper()
	eventually(s.t, "no "+kind+" of the operator", func() error {
		for _, u := range s.list(apiVersions[kind], kind) {
			if u.GetLabels()["operetta.dev/owner"] != "" {
				return fmt.Errorf("%s exists, deleted at %v", u.GetName(), u.GetDeletionTimestamp())
			}
		}
		return nil
	})
}

func TestSecretsBySelectorAreReadAsTheyComeAndGo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "byselector", reading)
	o := s.operate(p.dir)
	s.create(s.configMap("region-north", map[string]any{"name": "N"}))
	one := s.create(p.thing(s, "one", map[string]any{"region": "north"}))
	two := s.create(p.thing(s, "two", map[string]any{"region": "north"}))
	s.expectAllReady(one)
	s.expectAllReady(two)
	s.settle()
	secret := func(name, whose, value string) *unstructured.Unstructured {
		u := s.ref("Secret", name)
		u.SetLabels(map[string]string{"token": whose})
		u.Object["data"] = map[string]any{"value": base64.StdEncoding.EncodeToString([]byte(value))}
		return u
	}
	var a *unstructured.Unstructured
	s.onlyReconciles(o, p, 1, func() {
		a = s.create(secret("a", "one", "A1"))
		s.expectData("tokens-one", "a", "QTE=")
	})
	s.onlyReconciles(o, p, 1, func() {
		s.patch(a, map[string]any{"data": map[string]any{"value": "QTI="}})
		s.expectData("tokens-one", "a", "QTI=")
	})
	// A label moves a Secret from one resource to the other.
	s.patch(a, map[string]any{"metadata": map[string]any{"labels": map[string]any{"token": "two"}}})
	s.expectData("tokens-two", "a", "QTI=")
	s.expectThat(s.ref("ConfigMap", "tokens-one"), "to have lost what is not selected", func(u *unstructured.Unstructured) error {
		if got := field(u, "data", "a"); got != nil {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
	s.delete(a)
	s.expectThat(s.ref("ConfigMap", "tokens-two"), "to be empty", func(u *unstructured.Unstructured) error {
		if got := field(u, "data", "a"); got != nil {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
	s.expectAllReady(two)
}
