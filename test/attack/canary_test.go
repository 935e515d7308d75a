package attack

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// canary is what a Secret holds that nobody may be told.
const canary = "Qv8-Jm2-Xk5-canary-Wt7"

// forms are the ways in which it may be told: parts of it as it is, encoded, and as the
// digests that are usual, all in lower case.
func forms() map[string]string {
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	sha := sha256.Sum256([]byte(canary))
	ofEncoded := sha256.Sum256([]byte(encoded))
	md := md5.Sum([]byte(canary))
	older := sha1.Sum([]byte(canary))
	out := map[string]string{
		"its beginning":               "qv8-jm2",
		"its end":                     "canary-wt7",
		"base64":                      strings.ToLower(encoded[:12]),
		"the end of base64":           strings.ToLower(encoded[len(encoded)-10:]),
		"base64 for URLs":             strings.ToLower(base64.URLEncoding.EncodeToString([]byte(canary))[:12]),
		"hex":                         hex.EncodeToString([]byte(canary))[:12],
		"sha256":                      hex.EncodeToString(sha[:4]),
		"sha256 in base64":            strings.ToLower(base64.StdEncoding.EncodeToString(sha[:])[:10]),
		"sha256 of what is in base64": hex.EncodeToString(ofEncoded[:4]),
		"md5":                         hex.EncodeToString(md[:4]),
		"sha1":                        hex.EncodeToString(older[:4]),
	}
	return out
}

// leaks are the ways in which a package has told what a Secret holds, each a component of
// its own, or a field of the status, named X.
var leaks = []string{
	`components: X: verify: x: _dec == "zz"`,
	`components: X: when: _dec == "zz"`,
	`components: X: requires: x: _dec == "zz"`,
	`components: X: dependsOn: own: check: _dec == "zz"`,
	`components: X: {let y = inputs.s.object.data.k, verify: x: y == "zz"}`,
	`components: X: {outputs: pw: _dec, verify: x: outputs.pw == "zz"}`,
	`components: X: verify: x: (*live.own.secret.data.k | "") == "zz"`,
	`components: X: verify: x: _dec =~ "^zz$"`,
	`components: X: verify: x: _dec > "zz" && _dec < "a"`,
	`components: X: verify: x: inputs.s.object.data.k == "zz"`,
	`components: X: verify: x: "\(base64.Decode(null, inputs.s.object.data.k))" == "zz"`,
	`components: X: objects: o: _map & {metadata: name: "X", data: k: _dec & "other"}`,
	`components: X: objects: o: _map & {metadata: name: "X", data: k: _dec & =~"^no$"}`,
	`components: X: objects: o: _map & {metadata: name: "X", data: k: {a: "b"}[_dec]}`,
	`components: X: objects: o: {apiVersion: "v1", kind: "Secret", metadata: {name: "X", annotations: k: _dec & "other"}}`,
	`components: X: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "X", stringData: k: _dec & "other"}`,
	`components: X: objects: o: _map & {metadata: name: "X", data: k: "\(strconv.Atoi(_dec))"}`,
	`components: X: objects: o: _map & {metadata: name: "X", data: k: "\(json.Unmarshal(_dec))"}`,
	`components: X: objects: o: {apiVersion: "v1", kind: "Service", metadata: name: "X", spec: ports: [{port: 80, name: "\(_dec)_"}]}`,
	`components: X: objects: o: {apiVersion: "v1", kind: "Pod", metadata: name: "X", spec: containers: [{name: "x", image: "x", env: [{name: "= \(_dec)", value: "x"}]}]}`,
	`components: X: objects: o: _map & {metadata: {name: "X", labels: l: " \(_dec)"}}`,
	`components: X: objects: o: {apiVersion: "\(_dec)/v1" @untrusted(kind), kind: "Strange", metadata: name: "X"}`,
	`components: X: objects: o: {apiVersion: "v1", kind: "K\(_dec)" @untrusted(kind), metadata: name: "X"}`,
	`status: X: _dec & "other"`,
	`status: X: _dec`,
	`status: X: list: ["postgres://u:\(_dec)@host", inputs.s.object.data.k]`,
	`components: X: {timeout: "1s", verify: x: _dec == "zz", objects: o: _map & {metadata: name: "X"}}`,
	`components: X: objects: o: _map & {metadata: {name: "X", annotations: d: live.own.secret.metadata.annotations["operetta.dev/digest"]}}`,
	`components: X: failed: x: live.own.secret.metadata.annotations["operetta.dev/digest"] == _dec`,
}

// leaking returns a package with all leaks.
func leaking() string {
	var b strings.Builder
	b.WriteString(`
import "encoding/base64"
import "encoding/json"
import "strconv"

#Spec: {}
live: _
_uses: [strconv.Atoi("1"), json.Marshal(1)]
inputs: s: {apiVersion: "v1", kind: "Secret", name: "s"}
_dec: "\(base64.Decode(null, inputs.s.object.data.k))"
_map: {apiVersion: "v1", kind: "ConfigMap", ...}
components: own: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own", data: k: inputs.s.object.data.k}
hooks: afterDeployUnsuccessful: h: {
	objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "hook", data: k: inputs.s.object.data.k}
	objects: map: _map & {metadata: name: "hook"}
}
`)
	for i, leak := range leaks {
		b.WriteString(strings.ReplaceAll(leak, "X", fmt.Sprintf("x%02d", i)) + "\n")
	}
	return b.String()
}

// TestAttackNothingThatIsVisibleHoldsTheCanary looks for a Secret in all that those see who
// may read no Secret: statuses, events, names, the log and the metrics.
func TestAttackNothingThatIsVisibleHoldsTheCanary(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "canary", "")
	harness.WriteFile(t, p.Dir+"/more.cue", "package canary\n"+leaking())
	secret := s.Ref("Secret", "s")
	secret.Object["stringData"] = map[string]any{"k": canary}
	s.Create(secret)
	o := s.StartOperator(p.Dir, harness.Everywhere, harness.Alone, "--log=json", "--allow-annotations=log-level")
	cr := p.Thing(s, "one", map[string]any{})
	cr.SetAnnotations(map[string]string{"operetta.dev/log-level": "debug"})
	s.Create(cr)
	quote := s.PatchRef("quote")
	quote.Object["spec"] = map[string]any{
		"target":  map[string]any{"apiVersion": p.Name + ".example.com/v1", "kind": "Thing", "name": "one"},
		"patches": []any{harness.StrategicMerge("x20.o", map[string]any{"data": map[string]any{"more": "x"}})},
	}
	s.Create(quote)
	s.ExpectObject(cr, "to have tried everything", func(u *unstructured.Unstructured) error {
		components, _ := harness.Field(u, "status", "components").([]any)
		if len(components) < 20 {
			return fmt.Errorf("there are %d components", len(components))
		}
		return nil
	})
	s.ExpectPatch("quote", "Rejected")
	s.ExpectEvent("one", "Failed")
	s.WaitUntilIdle()

	told := map[string]string{"the log": o.Log.From(0), "the metrics": o.Metrics()}
	for kind, version := range map[string]string{
		"Event": "events.k8s.io/v1", "Thing": p.Name + ".example.com/v1", "Patch": quote.GetAPIVersion(), "Job": "batch/v1",
	} {
		for _, u := range s.List(version, kind) {
			told[kind+" "+u.GetName()] = string(harness.Encode(t, u.Object))
		}
	}
	for _, u := range s.List("v1", "Secret") {
		told["the name of a Secret "+u.GetName()] = u.GetName()
	}
	for who, text := range told {
		for form, part := range forms() {
			if at := strings.Index(strings.ToLower(text), part); at >= 0 {
				t.Errorf("%s tells %s: ...%s", who, form, text[max(0, at-200):min(len(text), at+60)])
			}
		}
	}
	salt := s.Get("Secret", "own").GetAnnotations()["operetta.dev/salt"]
	for who, text := range told {
		if salt == "" || strings.Contains(text, salt) {
			t.Errorf("%s tells the salt %q", who, salt)
		}
	}
	if code := profile(t, o.Address(harness.MetricsServer)); code != http.StatusNotFound {
		t.Errorf("the memory of the process is with the metrics: %d", code)
	}
}

// profile asks a server for a dump of the heap.
func profile(t *testing.T, address string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/debug/pprof/heap", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
