package e2e

import (
	"encoding/json"
	"testing"

	"operetta.dev/engine/why"
	"operetta.dev/test/harness"
)

// whyBody has a Deployment of a configurable size, and a ConfigMap with what is in another one.
const whyBody = `
#Spec: {
	// size is how large it is.
	size: int | *1
}
live: _
inputs: given: {apiVersion: "v1", kind: "ConfigMap", name: "given"}
components: web: objects: deployment: {
	apiVersion: "apps/v1"
	kind:       "Deployment"
	metadata: name: cr.metadata.name
	spec: {
		replicas: cr.spec.size
		selector: matchLabels: app: cr.metadata.name
		template: {
			metadata: labels: app: cr.metadata.name
			spec: containers: [{name: "main", image: "nginx", resources: requests: memory: "1024Mi"}]
		}
	}
}
components: copy: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: text: inputs.given.object.data.text}
`

func TestWhySaysWhereAValueComesFromAndWhoOwnsItNow(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.Create(s.ConfigMap("given", map[string]any{"text": "hello"}))
	p := newTestPackage(t, "asked", whyBody)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{}))
	s.ExpectResourceReady(cr)
	resource := "things." + cr.GroupVersionKind().Group + "/one"

	ask := func(args ...string) why.Answer {
		t.Helper()
		text, code := s.operettaAs(s.AdminKubeconfig(), append([]string{"why", p.Dir, resource, "-o", "json"}, args...)...)
		var out why.Answer
		if err := json.Unmarshal([]byte(text), &out); err != nil || code != 0 {
			t.Fatalf("%v: exit code %d, %v:\n%s", args, code, err, text)
		}
		if out.Live == nil {
			t.Fatalf("%v: nothing was read from the cluster:\n%s", args, text)
		}
		return out
	}

	a := ask("deployment/one", ".spec.replicas")
	// The API server has written the default into the resource, as its CRD says.
	if len(a.Sources) != 1 || a.Sources[0].Path != "cr.spec.size" || a.Sources[0].From != why.Default || a.Live.Differs {
		t.Errorf("the size is explained as %+v, live %+v", a.Sources, a.Live)
	}
	expectOwner(t, a, "operetta", "Apply")

	a = ask("configmap/one", ".data.text")
	if len(a.Sources) != 1 || a.Sources[0].Object != "ConfigMap/given" || a.Sources[0].Value != "hello" || a.Value != "hello" {
		t.Errorf("the text is explained as %+v", a)
	}
	if a = ask("deployment/one", `.spec.template.spec.containers[name="main"].resources.requests.memory`); a.Live.Differs || a.Live.Value != "1Gi" {
		t.Errorf("a quantity is explained as %+v, live %+v", a, a.Live)
	}
	// The API server sets what nobody has written.
	if a = ask("deployment/one", ".spec.template.spec.containers[0].terminationMessagePath"); a.Written || len(a.Live.Owners) != 0 || a.Live.Value != "/dev/termination-log" {
		t.Errorf("a default of the API server is explained as %+v", a)
	}

	// The picture of what is live has states, and with the package the kinds of dependencies.
	for _, args := range [][]string{{"graph", resource, "-o", "svg"}, {"graph", p.Dir, resource, "-o", "svg"}} {
		picture, code := s.operettaAs(s.AdminKubeconfig(), args...)
		if code != 0 {
			t.Errorf("%v ends with %d:\n%s", args, code, picture)
		}
		s.expectParts(picture, "<svg ", ": Ready, 2/2 components", ">web</text>", ">Verified</text>", ">Deployment/one</text>")
	}

	// While a resource is paused, somebody else may take a field over.
	s.Patch(cr, harness.Annotation("operetta.dev/paused", "true"))
	s.Kubectl("patch", "deployment/one", "--field-manager=somebody", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:other"}]}}}}`)
	a = ask("deployment/one", ".spec.template.spec.containers[0].image")
	if !a.Live.Differs || a.Value != "nginx" || a.Live.Value != "nginx:other" {
		t.Errorf("the image is explained as %+v, live %+v", a, a.Live)
	}
	expectOwner(t, a, "somebody", "Update")
	text, _ := s.operettaAs(s.AdminKubeconfig(), "why", p.Dir, resource, "deployment/one", ".spec.template.spec.containers[0].image")
	s.expectParts(text, "Deployment/one in "+s.Namespace, `= "nginx"`, "asked.cue", "in the cluster", `differs: "nginx:other"`, "owned by somebody  Update", " ago")
}

// expectOwner fails the test unless one manager owns the field of an answer.
func expectOwner(t *testing.T, a why.Answer, manager, operation string) {
	t.Helper()
	if len(a.Live.Owners) != 1 || a.Live.Owners[0].Manager != manager || a.Live.Owners[0].Operation != operation || a.Live.Owners[0].Time == nil {
		t.Errorf("%s is owned by %+v, not by %s", a.Path, a.Live.Owners, manager)
	}
}
