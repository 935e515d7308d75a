package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// greetingPackage is a package of its own beside webapp: one ConfigMap.
const greetingPackage = `package greeting

import "operetta.dev/schemas/operator"

operator.#Controller

group: "greetings.example.com"
kind:  "Greeting"
versions: v1: spec: #Spec

#Spec: text: string | *"hello"

cr: spec: #Spec

components: text: objects: configmap: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "greeting-\(cr.metadata.name)"
	data: text: cr.spec.text
}
`

func TestTwoPackagesInOneProcessBothReconcile(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	dir := harness.WritePackage(t, "greeting", greetingPackage)
	o := s.StartOperator(harness.PackageDir("webapp"), dir)
	s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	g := harness.Object("greetings.example.com/v1", "Greeting", s.Namespace, "world")
	s.Create(g)
	s.ExpectReady("shop")
	s.ExpectResourceReady(g)
	if got := harness.Field(s.Get("ConfigMap", "greeting-world"), "data", "text"); got != "hello" {
		t.Errorf("the text is %v", got)
	}
	s.WaitUntilIdle()
	// Each is repaired by its own, and an edit of one does not disturb the other.
	before, from := s.Get("WebApp", "shop").GetResourceVersion(), harness.MarkAudit(t)
	s.Delete(s.Ref("ConfigMap", "greeting-world"))
	s.ExpectObject(s.Ref("ConfigMap", "greeting-world"), "to return", harness.Exists)
	position := o.Log.Len()
	harness.WriteFile(t, filepath.Join(dir, "greeting.cue"), greetingPackage+"\ncomponents: text: objects: configmap: data: more: \"yes\"\n")
	o.ExpectLogAfter(position, "package replaced", "package=greeting")
	s.ExpectResourceReady(g)
	s.WaitUntilIdle()
	if got := harness.Field(s.Get("ConfigMap", "greeting-world"), "data", "more"); got != "yes" {
		t.Errorf("the edited package has not taken effect: %v", got)
	}
	t.Logf("writes: %s", s.OperatorRequests(from).Mutating())
	if s.Get("WebApp", "shop").GetResourceVersion() != before {
		t.Error("the WebApp was changed by the other package")
	}
	s.Delete(g)
	s.ExpectGone(g)
	s.ExpectGone(s.Ref("ConfigMap", "greeting-world"))
}

func TestTwoPackagesWithTheSameKindOfDifferentGroups(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := copyPackage(t, "webapp", map[string]string{`group: "example.com"`: `group: "second.example.com"`})
	s.StartOperator(harness.PackageDir("webapp"), p.dir)
	spec := map[string]any{"image": "nginx:1.25", "replicas": int64(1)}
	s.Create(s.Webapp("one", spec))
	other := harness.Object("second.example.com/v1", "WebApp", s.Namespace, "two")
	other.Object["spec"] = spec
	s.Create(other)
	s.ExpectReady("one")
	s.ExpectResourceReady(other)
}

func TestTwoPackagesWithTheSameKindEndTheStart(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	first, second := newTestPackage(t, "twin", bystanderBody), newTestPackage(t, "twin", bystanderBody)
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	defer cancel()
	s.GrantRun(first.Dir, second.Dir)
	from := harness.MarkAudit(t)
	out, err := exec.CommandContext(ctx, harness.Suite.Operetta, "run", "--kubeconfig", s.Kubeconfig, first.Dir, second.Dir).CombinedOutput()
	if err == nil || ctx.Err() != nil || !harness.ContainsAll(string(out), []string{"packages twin (folder " + first.Dir + ") and twin (folder " + second.Dir + ") both serve Thing.twin.example.com"}) {
		t.Errorf("the error is %v: %s", err, out)
	}
	if asked := s.OperatorRequests(from).OfResource("things"); len(asked) > 0 {
		t.Errorf("one of them acted: %s", asked)
	}
}
