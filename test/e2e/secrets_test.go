package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// secretCanary is what nobody may be told who may not read Secrets. It has what CUE, Go
// and JSON have to escape.
const secretCanary = "Zq7Kx9\"Vw3\nTbHj5Rd-canary"

var encodedSecret = base64.StdEncoding.EncodeToString([]byte(secretCanary))

// secretForms are parts of the canary, as it is and encoded, in lower case.
var secretForms = []string{"zq7kx9", "tbhj5rd", strings.ToLower(encodedSecret[:10]), strings.ToLower(encodedSecret[len(encodedSecret)-10:])}

// secretFaults are expressions over X that CUE has something to say about, each in
// an object, in the status and in a hidden field.
var secretFaults = []string{
	`X + 1`, `X & "other"`, `X * "a"`, `"\(X)-x" & "y"`, `[for c in [X] if c < 3 {c}][0]`, `strings.ToUpper(X) + 1`, `{(X): 1 & 2}`,
	`strconv.Atoi(X)`, `*X | 3 & 4`, `live.own[X].y`, `cr.spec[X]`, `{let y = X, z: y & "1"}.z`, `X & =~"^no$"`, `X & strings.MaxRunes(2)`,
	`strings.Split(X, "")[99]`,
}

// secretConditions are conditions over X.
var secretConditions = []string{
	`X == "x"`, `X =~ "^nothing$"`, `strings.ToUpper(X) == "x"`, `X + 1 == 2`, `len(X) == 3`, `strings.SliceRunes(X, 0, 6) == "x"`, `live.own[X].y == 3`,
}

// secretSources are ways to come to the canary.
var secretSources = []string{`inputs.tok.object.data.k`, `_plain`, `live.own.secret.data.k`, `cr.spec.password`}

// leaking is a package that says what a Secret holds wherever it can.
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
	s := newSite(t)
	p := newSmall(t, "leaking", "")
	writeFile(t, filepath.Join(p.dir, "more.cue"), strings.ReplaceAll(leaking(), "NAME", p.name))
	tok := s.ref("Secret", "tok")
	tok.Object["stringData"] = map[string]any{"k": secretCanary}
	s.create(tok)
	o := s.operate(p.dir, "--log=json")
	cr := s.create(loud(p.thing(s, "one", map[string]any{"password": secretCanary})))
	quote := s.patchRef("quote")
	quote.Object["spec"] = map[string]any{
		"target":  map[string]any{"apiVersion": p.name + ".example.com/v1", "kind": "Thing", "name": "one"},
		"patches": []any{merges("labelled.cm", map[string]any{"data": map[string]any{"more": "x"}})},
	}
	s.create(quote)
	s.expectData("copied", "k", secretCanary) // the author wants it so
	s.expectNotReady(cr, "InvalidPackage", "not shown, because it comes from a Secret")
	s.expectThat(cr, "to have the author's fields", func(u *unstructured.Unstructured) error {
		text := string(encode(t, u.Object["status"]))
		for _, want := range []string{`"plain":"***"`, `"url":"postgres://user:***@host"`} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("it does not say %s", want)
			}
		}
		return nil
	})
	o.expectLog("labelled", "Rejected", "a valid label must")
	o.expectLog("typed", "Rejected", "clusterIP")
	s.expectPatch("quote", "Rejected")
	s.expectEvent("one", "Failed")

	told := map[string]string{"the log": o.log.from(0), "the metrics": o.metrics()}
	for _, u := range append(s.list("events.k8s.io/v1", "Event"), s.list(p.name+".example.com/v1", "Thing")...) {
		unstructured.RemoveNestedField(u.Object, "spec") // which is where it comes from
		told["the "+u.GetKind()+" "+u.GetName()] = string(encode(t, u.Object))
	}
	patch := s.patchRef("quote")
	told["the status of the patch"] = string(encode(t, s.expectThat(patch, "to be there", func(*unstructured.Unstructured) error { return nil }).Object["status"]))
	told["the annotations of a Secret"] = fmt.Sprint(s.get("Secret", "own-one").GetAnnotations())
	dry, err := s.rehearse(p.dir)
	told["the dry run"] = dry + stderrOf(err)
	vet, _ := exec.Command(world.operetta, "vet", p.dir).CombinedOutput()
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
	s := newSite(t)
	p := newSmall(t, "awaiting", `
#Spec: {}
inputs: credentials: {apiVersion: "v1", kind: "Secret", name: "\(cr.metadata.name)-credentials"}
components: web: {
	requires: given: inputs.credentials.object.data.password != _|_
	objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
}
`)
	s.operate(p.dir)
	cr := s.create(p.thing(s, "one", map[string]any{}))
	t.Log(s.expectNotReady(cr, "WaitingForRequirement", "Secret "+s.namespace+"/one-credentials (input credentials) does not exist"))
	given := s.ref("Secret", "one-credentials")
	given.Object["stringData"] = map[string]any{"user": "u"}
	s.create(given)
	t.Log(s.expectNotReady(cr, "WaitingForRequirement", "Secret "+s.namespace+"/one-credentials (input credentials) has no key password"))
	s.patch(given, map[string]any{"stringData": map[string]any{"password": "p"}})
	s.expectAllReady(cr)
}

// metrics returns all metrics of the operator as text.
func (o *operator) metrics() string {
	o.t.Helper()
	response, err := http.Get("http://" + o.address(metricsServer) + "/metrics")
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(body)
}
