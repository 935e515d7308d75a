package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// smallHead begins a small package; NAME is its name, and part of its group.
const smallHead = `package NAME

import "operetta.dev/schemas/operator"

operator.#Controller

group: "NAME.example.com"
kind:  "Thing"
versions: v1: spec: #Spec
cr: spec: #Spec
`

// small is a package of one test, whose group no other test has, so that tests run
// side by side.
type small struct {
	t    *testing.T
	name string
	dir  string
}

// newSmall writes a small package of a body, in which NAME is its name as well.
func newSmall(t *testing.T, name, body string) *small {
	t.Helper()
	return &small{t: t, name: name, dir: writePackage(t, name, strings.ReplaceAll(smallHead+body, "NAME", name))}
}

// controller is the name that metrics know the package by.
func (p *small) controller() string { return "thing." + p.name + ".example.com" }

// thing returns a resource of the package.
func (p *small) thing(s *site, name string, spec map[string]any) *unstructured.Unstructured {
	u := object(p.name+".example.com/v1", "Thing", s.namespace, name)
	u.Object["spec"] = spec
	return u
}

// configMap returns a ConfigMap of the site.
func (s *site) configMap(name string, data map[string]any) *unstructured.Unstructured {
	u := s.ref("ConfigMap", name)
	u.Object["data"] = data
	return u
}

// expectData waits until a ConfigMap says something.
func (s *site) expectData(name, key, want string) *unstructured.Unstructured {
	s.t.Helper()
	return s.expectThat(s.ref("ConfigMap", name), fmt.Sprintf("to have %s: %s", key, want), func(u *unstructured.Unstructured) error {
		if got := field(u, "data", key); got != want {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// expectFinished waits until nothing is left of a deleted resource: neither itself
// nor an object that it marked.
func (s *site) expectFinished(cr *unstructured.Unstructured, kinds ...string) {
	s.t.Helper()
	s.expectGone(cr)
	for _, kind := range kinds {
		eventually(s.t, "no "+kind+" of "+cr.GetName(), func() error {
			for _, u := range s.list(apiVersions[kind], kind) {
				if u.GetLabels()["operetta.dev/owner"] != "" {
					return fmt.Errorf("%s exists, deleted at %v", u.GetName(), u.GetDeletionTimestamp())
				}
			}
			return nil
		})
	}
}
