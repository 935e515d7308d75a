package attack

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pinnedBody is a package that stores a PIN in a Secret, reads another one, and uses both as packages
// do: in pods that roll, in a Job that copies it, and in hooks.
const pinnedBody = `
#Spec: {}
live: _
inputs: pin: {apiVersion: "v1", kind: "Secret", name: "pin"}
_pod: {metadata: {labels: app: "x", ...}, spec: {containers: [{name: "main", image: "main:1", ...}], ...}}
_job: {apiVersion: "batch/v1", kind: "Job", metadata: name: string, spec: {suspend: true, template: _pod & {spec: restartPolicy: "Never"}}}
components: {
	own: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own", data: pin: inputs.pin.object.data.pin}
	web: objects: deployment: {
		apiVersion: "apps/v1"
		kind:       "Deployment"
		metadata: name: "web"
		spec: {
			replicas: 0
			selector: matchLabels: app: "x"
			template: _pod & {metadata: annotations: {
				own: *live.own.secret.metadata.annotations["operetta.dev/digest"] | ""
				pin: inputs.pin.object.metadata.annotations["operetta.dev/digest"]
			}}
		}
	}
	job: {
		objects: job: _job & {metadata: name: "job", spec: template: spec: containers: [{env: [{name: "PIN", value: inputs.pin.object.data.pin}]}]}
		policy: job: verify: "exists"
	}
}
hooks: afterDeploy: {
	beside: {
		objects: {
			secret: {apiVersion: "v1", kind: "Secret", metadata: name: "beside", data: pin: inputs.pin.object.data.pin}
			job: _job & {metadata: name: "beside"}
		}
		policy: job: verify: "exists"
	}
	copied: {
		objects: job: _job & {metadata: name: "copied", spec: template: metadata: annotations: pin: inputs.pin.object.data.pin}
		policy: job: verify: "exists"
	}
}
status: digest: live.own.secret.metadata.annotations["operetta.dev/digest"]
`

// hexadecimal matches text that may be a digest, or a part of one.
var hexadecimal = regexp.MustCompile(`[0-9a-f]{8,}`)

// In TestAttackADigestIsNoOracle the attacker may get the resource, Deployments, Jobs and events, but
// no Secret. They know the package, what it renders and how digests are computed.
func TestAttackADigestIsNoOracle(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "oracle", pinnedBody)
	pin := s.Ref("Secret", "pin")
	const value = "471174"
	pin.Object["stringData"] = map[string]any{"pin": value}
	s.Create(pin)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	cr := s.Create(p.Thing(s, "one", map[string]any{}))
	s.ExpectResourceReady(cr)

	get := []any{"get", "list"}
	mallory := s.Tenant("mallory", s.Namespace, harness.Rule(p.Name+".example.com", get, "*"),
		harness.Rule("apps", get, "deployments"), harness.Rule("batch", get, "jobs"), harness.Rule("events.k8s.io", get, "events"))
	visible := digestsSeen(mallory, map[string]string{
		"Thing": p.Name + ".example.com/v1", "Deployment": "apps/v1", "Job": "batch/v1", "Event": "events.k8s.io/v1",
	})
	texts := digestInputs(s, base64.StdEncoding.EncodeToString([]byte(value)))
	t.Logf("%d texts may be digests, of %d texts", len(visible), len(texts))
	if len(visible) < 10 {
		t.Fatal("the attack sees next to nothing")
	}
	// A script tries a million PINs. A match of any other value would be a coincidence.
	for name, around := range texts {
		middle := base64.StdEncoding.EncodeToString([]byte(value))
		if strings.HasPrefix(name, "plain") {
			middle = value
		}
		sum := sha256.Sum256([]byte(around[0] + middle + around[1]))
		if digest := hex.EncodeToString(sum[:]); visible[digest[:8]] || visible[digest[:16]] || visible[digest] {
			t.Errorf("whoever tries %s finds the PIN", name)
		}
	}
}

// digestsSeen returns everything that may be a digest in all objects that a tenant may list.
func digestsSeen(x *harness.Tenant, kinds map[string]string) map[string]bool {
	x.T.Helper()
	out := map[string]bool{}
	for kind, version := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind+"List"))
		if err := x.Client.List(x.T.Context(), list, client.InNamespace(x.Namespace)); err != nil {
			x.T.Fatal(err)
		}
		for _, u := range list.Items {
			for _, digits := range hexadecimal.FindAllString(string(harness.Encode(x.T, u.Object)), -1) {
				out[digits] = true
			}
		}
	}
	return out
}

// digestInputs returns what digests may be computed from, as the texts before and after a value: the
// manifests of Secrets, of which an attacker who knows the package knows all but the value, those of
// hooks, and the requests of Jobs.
func digestInputs(s *harness.Env, value string) map[string][2]string {
	s.T.Helper()
	out := map[string][2]string{"plain": {}, "encoded": {}, "plain data": {`{"pin":"`, `"}`}, "data": {`{"pin":"`, `"}`}}
	add := func(name string, v any) {
		before, after, ok := strings.Cut(string(harness.Encode(s.T, v)), value)
		if !ok {
			s.T.Fatalf("%s does not have the value", name)
		}
		out[name] = [2]string{before, after}
	}
	for _, u := range s.List("v1", "Secret") {
		if u.GetLabels()["operetta.dev/owner"] == "" {
			continue
		}
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		for _, mark := range []string{"operetta.dev/applied", "operetta.dev/salt"} {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", mark)
		}
		delete(u.Object, "type") // the API server sets it
		add("Secret "+u.GetName(), u.Object)
	}
	job := func(name string, meta map[string]any, container map[string]any) map[string]any {
		meta["labels"] = map[string]any{"app": "x"}
		container["name"], container["image"] = "main", "main:1"
		spec := map[string]any{"suspend": true, "template": map[string]any{
			"metadata": meta, "spec": map[string]any{"containers": []any{container}, "restartPolicy": "Never"},
		}}
		return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": name}, "spec": spec}
	}
	env := map[string]any{"env": []any{map[string]any{"name": "PIN", "value": value}}}
	add("content of job", map[string]any{"kind": "Job", "spec": job("job", map[string]any{}, env)["spec"]})
	copied := job("copied", map[string]any{"annotations": map[string]any{"pin": value}}, map[string]any{})
	add("content of hook copied", map[string]any{"kind": "Job", "spec": copied["spec"]})
	add("hook copied", map[string]any{"objects": []any{copied}})
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "beside"}, "data": map[string]any{"pin": value}}
	add("hook beside", map[string]any{"objects": []any{secret, job("beside", map[string]any{}, map[string]any{})}})
	return out
}
