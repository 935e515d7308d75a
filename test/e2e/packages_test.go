package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// greeting is a package of its own beside webapp: one ConfigMap.
const greeting = `package greeting

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

// writePackage writes a package of one file into a folder of its own, without any
// module, and returns the folder.
func writePackage(t *testing.T, name, content string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, name+".cue"), content)
	return dir
}

func TestTwoPackagesInOneProcessBothReconcile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := writePackage(t, "greeting", greeting)
	o := s.operate(packageOf("webapp"), dir)
	s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	g := object("greetings.example.com/v1", "Greeting", s.namespace, "world")
	s.create(g)
	s.expectReady("shop")
	s.expectAllReady(g)
	if got := field(s.get("ConfigMap", "greeting-world"), "data", "text"); got != "hello" {
		t.Errorf("the text is %v", got)
	}
	s.settle()
	// Each is repaired by its own, and an edit of one does not disturb the other.
	before, from := s.get("WebApp", "shop").GetResourceVersion(), mark(t)
	s.delete(s.ref("ConfigMap", "greeting-world"))
	s.expectThat(s.ref("ConfigMap", "greeting-world"), "to return", exists)
	position := o.log.len()
	writeFile(t, filepath.Join(dir, "greeting.cue"), greeting+"\ncomponents: text: objects: configmap: data: more: \"yes\"\n")
	o.expectLogAfter(position, "package replaced", "package=greeting")
	s.expectAllReady(g)
	s.settle()
	if got := field(s.get("ConfigMap", "greeting-world"), "data", "more"); got != "yes" {
		t.Errorf("the edited package has not taken effect: %v", got)
	}
	t.Logf("writes: %s", s.operatorRequests(from).mutating())
	if s.get("WebApp", "shop").GetResourceVersion() != before {
		t.Error("the WebApp was changed by the other package")
	}
	s.delete(g)
	s.expectGone(g)
	s.expectGone(s.ref("ConfigMap", "greeting-world"))
}

func TestTwoPackagesWithTheSameKindOfDifferentGroups(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := copyPackage(t, "webapp", map[string]string{`group: "example.com"`: `group: "second.example.com"`})
	s.operate(packageOf("webapp"), p.dir)
	spec := map[string]any{"image": "nginx:1.25", "replicas": int64(1)}
	s.create(s.webapp("one", spec))
	other := object("second.example.com/v1", "WebApp", s.namespace, "two")
	other.Object["spec"] = spec
	s.create(other)
	s.expectReady("one")
	s.expectAllReady(other)
}

func TestTwoPackagesWithTheSameKindEndTheStart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := newSmall(t, "twin", bystander), newSmall(t, "twin", bystander)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	from := mark(t)
	out, err := exec.CommandContext(ctx, world.operetta, "run", "--kubeconfig", s.kubeconfig, first.dir, second.dir).CombinedOutput()
	if err == nil || ctx.Err() != nil || !strings.Contains(string(out), "packages twin and twin both serve Thing.twin.example.com") {
		t.Errorf("the error is %v: %s", err, out)
	}
	if asked := s.operatorRequests(from).about("things"); len(asked) > 0 {
		t.Errorf("one of them acted: %s", asked)
	}
}
