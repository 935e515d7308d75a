package attack

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"operetta.dev/test/harness"
)

// templated is a package that gives what a user writes to a library without a bound.
const templated = `package NAME

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

// TestAttackTemplatesThatNeverEndHoldNobodyUp is attack 1d: four such resources took all
// workers of their kind, without a word, and the process did not end in time.
func TestAttackTemplatesThatNeverEndHoldNobodyUp(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t)
	p := harness.NewSmall(t, "endless", "")
	harness.WriteFile(t, filepath.Join(p.Dir, "body.cue"), strings.ReplaceAll(templated, "NAME", p.Name))
	o := s.Operate(p.Dir, harness.Everywhere, harness.Alone, "--health-probe-bind-address", harness.AnyPort, "--step-limit=20s")
	far := s.Elsewhere()
	alice := s.Tenant("alice", s.Namespace, things(p))
	bob := s.Tenant("bob", far, things(p))
	thing := func(template string) map[string]any { return map[string]any{"template": template, "text": "a"} }
	good := "{{.}}"

	before := bob.Create(elsewhere(p.Thing(s, "before", thing(good)), far))
	s.ExpectAllReady(before)
	for i := range 4 {
		alice.Create(p.Thing(s, fmt.Sprintf("hangs-%d", i), thing(endless)))
	}
	if o.Probe("healthz") != http.StatusOK {
		t.Error("it is ill before the limit")
	}
	for i := range 5 {
		s.ExpectAllReady(bob.Create(elsewhere(p.Thing(s, fmt.Sprintf("new-%d", i), thing(good)), far)))
	}
	s.ExpectAllReady(alice.Create(p.Thing(s, "mine", thing(good))))
	if err := bob.Patch(before, harness.Spec(map[string]any{"text": "b"})); err != nil {
		t.Fatal(err)
	}
	s.ExpectAllReady(before)
	for i := range 4 {
		o.ExpectLog("a step is slow", fmt.Sprintf("hangs-%d", i))
	}
	harness.Eventually(t, "healthz to fail", func() error {
		if code := o.Probe("healthz"); code == http.StatusOK {
			return fmt.Errorf("it is %d", code)
		}
		return nil
	})
	if code := o.Probe("readyz"); code != http.StatusOK {
		t.Errorf("readyz is %d: whoever replaces the process would wait for it", code)
	}
	began := time.Now()
	o.Stop()
	if took := harness.Since(began); took > 20*time.Second {
		t.Errorf("it took %s to end", took)
	}
	if code := o.ExitCode(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}
