package attack

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// templatePackage is a package that passes a text of the user to a library without a limit.
const templatePackage = `package NAME

import "text/template"

#Spec: {template: string, text: string | *"hello"}

components: greeting: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: text: template.Execute(cr.spec.template, cr.spec.text)
}
`

// endless is a template that never ends and needs no memory.
const endless = "{{range $i := 9223372036854775807}}{{end}}"

// TestAttackTemplatesThatNeverEndHoldNobodyUp is attack 1d: four such resources blocked all workers of
// their kind without a log line, and the process did not end in time.
func TestAttackTemplatesThatNeverEndHoldNobodyUp(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "endless", "")
	harness.WriteFile(t, filepath.Join(p.Dir, "body.cue"), strings.ReplaceAll(templatePackage, "NAME", p.Name))
	o := s.StartOperator(p.Dir, harness.Everywhere, harness.Alone, "--health-probe-bind-address", harness.AnyPort)
	far := s.OtherNamespace()
	alice := s.Tenant("alice", s.Namespace, things(p))
	bob := s.Tenant("bob", far, things(p))
	thing := func(template string) map[string]any { return map[string]any{"template": template, "text": "a"} }
	good := "{{.}}"

	before := bob.Create(inNamespace(p.Thing(s, "before", thing(good)), far))
	s.ExpectResourceReady(before)
	var hanging []*unstructured.Unstructured
	for i := range 4 {
		hanging = append(hanging, alice.Create(p.Thing(s, fmt.Sprintf("hangs-%d", i), thing(endless))))
	}
	for i := range 5 {
		s.ExpectResourceReady(bob.Create(inNamespace(p.Thing(s, fmt.Sprintf("new-%d", i), thing(good)), far)))
	}
	s.ExpectResourceReady(alice.Create(p.Thing(s, "mine", thing(good))))
	if err := bob.Patch(before, harness.Spec(map[string]any{"text": "b"})); err != nil {
		t.Fatal(err)
	}
	s.ExpectResourceReady(before)
	for _, u := range hanging {
		s.ExpectNotReady(u, "EvaluationTooSlow", "took more than the limit of 2s of processor time")
	}
	for _, path := range []string{"healthz", "readyz"} {
		if code := o.Probe(path); code != http.StatusOK {
			t.Errorf("%s is %d", path, code)
		}
	}
	if err := alice.Patch(hanging[0], harness.Spec(thing(good))); err != nil {
		t.Fatal(err)
	}
	s.ExpectResourceReady(hanging[0])
	if err := alice.Patch(hanging[1], harness.Spec(thing(endless+" "))); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o.Stop()
	harness.ExpectWithin(t, 20*time.Second, "its end", time.Since(began))
	if code := o.ExitCode(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}
