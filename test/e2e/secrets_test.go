package e2e

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// secretCanary is a value that must not reach users who may not read Secrets. It contains characters
// that CUE, Go and JSON have to escape.
const secretCanary = "Zq7Kx9\"Vw3\nTbHj5Rd-canary"

var encodedSecret = base64.StdEncoding.EncodeToString([]byte(secretCanary))

// secretForms are parts of the canary, verbatim and encoded, in lower case.
var secretForms = []string{"zq7kx9", "tbhj5rd", strings.ToLower(encodedSecret[:10]), strings.ToLower(encodedSecret[len(encodedSecret)-10:])}

// secretFaults are expressions over X that CUE reports errors about, each in an object, in the status
// and in a hidden field.
var secretFaults = []string{
	`X + 1`, `X & "other"`, `X * "a"`, `"\(X)-x" & "y"`, `[for c in [X] if c < 3 {c}][0]`, `strings.ToUpper(X) + 1`, `{(X): 1 & 2}`,
	`strconv.Atoi(X)`, `*X | 3 & 4`, `live.own[X].y`, `cr.spec[X]`, `{let y = X, z: y & "1"}.z`, `X & =~"^no$"`, `X & strings.MaxRunes(2)`,
	`strings.Split(X, "")[99]`,
}

// secretConditions are conditions over X.
var secretConditions = []string{
	`X == "x"`, `X =~ "^nothing$"`, `strings.ToUpper(X) == "x"`, `X + 1 == 2`, `len(X) == 3`, `strings.SliceRunes(X, 0, 6) == "x"`, `live.own[X].y == 3`,
}

// secretSources are expressions that lead to the canary.
var secretSources = []string{`inputs.tok.object.data.k`, `_plain`, `live.own.secret.data.k`, `cr.spec.password`}

// leaking is a package that uses the content of a Secret wherever it can.
func leaking() string {
	var b strings.Builder
	b.WriteString(`package NAME

import "encoding/base64"
import "strconv"
import "strings"

#Spec: password: string
live: _
_uses: [strconv.Atoi("1"), strings.ToUpper("")]
inputs: tok: {apiVersion: "v1", kind: "Secret", name: "tok"}
_plain: "\(base64.Decode(null, inputs.tok.object.data.k))"
components: {
	own: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own-\(cr.metadata.name)", stringData: k: cr.spec.password}
	labelled: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: "labelled", labels: token: _plain}}
	typed: objects: svc: {apiVersion: "v1", kind: "Service", metadata: name: "typed", spec: {type: "ClusterIP", clusterIP: _plain, ports: [{port: 80}]}}
	copied: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "copied", data: k: _plain}
}
status: {plain: _plain, encoded: inputs.tok.object.data.k, url: "postgres://user:\(_plain)@host", mine: cr.spec.password}
`)
	for i, source := range secretSources {
		at := func(x, format string, args ...any) {
			fmt.Fprintf(&b, format+"\n", append(args, strings.ReplaceAll(x, "X", "("+source+")"))...)
		}
		for j, x := range secretFaults {
			at(x, `components: m%d_%d: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "m-%d-%d", data: k: %s}`, i, j, i, j)
			at(x, `status: s%d_%d: %s`, i, j)
			at(x, `components: h%d_%d: {objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "h-%d-%d", data: k: _hidden}, _hidden: %s}`, i, j, i, j)
		}
		for j, x := range secretConditions {
			at(x, `components: r%d_%d: requires: ok: %s`, i, j)
			at(x, `components: v%d_%d: verify: ok: %s`, i, j)
			at(x, `components: w%d_%d: when: %s`, i, j)
			at(x, `components: e%d_%d: dependsOn: own: check: %s`, i, j)
		}
	}
	return b.String()
}

func TestWhatASecretHoldsIsToldToNobody(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "leaking", "")
	harness.WriteFile(t, filepath.Join(p.Dir, "more.cue"), strings.ReplaceAll(leaking(), "NAME", p.Name))
	tok := s.Ref("Secret", "tok")
	tok.Object["stringData"] = map[string]any{"k": secretCanary}
	s.Create(tok)
	o := s.StartOperator(p.Dir, "--log=json", "--allow-annotations=log-level")
	cr := s.Create(withReconcileLog(p.Thing(s.Env, "one", map[string]any{"password": secretCanary})))
	quote := s.PatchRef("quote")
	quote.Object["spec"] = map[string]any{
		"target":  map[string]any{"apiVersion": p.Name + ".example.com/v1", "kind": "Thing", "name": "one"},
		"patches": []any{harness.StrategicMerge("labelled.cm", map[string]any{"data": map[string]any{"more": "x"}})},
	}
	s.Create(quote)
	s.ExpectData("copied", "k", secretCanary) // the author wants it so
	s.ExpectNotReady(cr, "InvalidPackage", "not shown, because it comes from a Secret")
	s.ExpectObject(cr, "to have the author's fields", func(u *unstructured.Unstructured) error {
		text := string(harness.Encode(t, u.Object["status"]))
		for _, want := range []string{`"plain":"***"`, `"url":"postgres://user:***@host"`} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("it does not say %s", want)
			}
		}
		return nil
	})
	o.ExpectLog("labelled", "Rejected", "a valid label must")
	o.ExpectLog("typed", "Rejected", "clusterIP")
	s.ExpectPatch("quote", "Rejected")
	s.ExpectEvent("one", "Failed")

	told := map[string]string{"the log": o.Log.From(0), "the metrics": o.Metrics()}
	for _, u := range append(s.List("events.k8s.io/v1", "Event"), s.List(p.Name+".example.com/v1", "Thing")...) {
		unstructured.RemoveNestedField(u.Object, "spec") // which is where it comes from
		told["the "+u.GetKind()+" "+u.GetName()] = string(harness.Encode(t, u.Object))
	}
	patch := s.PatchRef("quote")
	told["the status of the patch"] = string(harness.Encode(t, s.ExpectObject(patch, "to be there", func(*unstructured.Unstructured) error { return nil }).Object["status"]))
	told["the annotations of a Secret"] = fmt.Sprint(s.Get("Secret", "own-one").GetAnnotations())
	dry, err := s.dryRun(p.Dir)
	told["the dry run"] = dry + harness.StderrOf(err)
	vet, _ := exec.Command(harness.Suite.Operetta, "vet", p.Dir).CombinedOutput()
	told["vet"] = string(vet)
	for who, text := range told {
		t.Logf("%s: %d bytes, of which %d times that it is not shown", who, len(text), strings.Count(text, "not shown"))
		for _, form := range secretForms {
			if at := strings.Index(strings.ToLower(text), form); at >= 0 {
				t.Errorf("%s tells it: ...%s", who, text[max(0, at-200):min(len(text), at+60)])
			}
		}
	}
}

func TestASecretThatIsAwaitedIsNamed(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "awaiting", `
#Spec: {}
inputs: credentials: {apiVersion: "v1", kind: "Secret", name: "\(cr.metadata.name)-credentials"}
components: web: {
	requires: given: inputs.credentials.object.data.password != _|_
	objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
}
`)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{}))
	t.Log(s.ExpectNotReady(cr, "WaitingForRequirement", "Secret "+s.Namespace+"/one-credentials (input credentials) does not exist"))
	given := s.Ref("Secret", "one-credentials")
	given.Object["stringData"] = map[string]any{"user": "u"}
	s.Create(given)
	t.Log(s.ExpectNotReady(cr, "WaitingForRequirement", "Secret "+s.Namespace+"/one-credentials (input credentials) has no key password"))
	s.Patch(given, map[string]any{"stringData": map[string]any{"password": "p"}})
	s.ExpectResourceReady(cr)
}
