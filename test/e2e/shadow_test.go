package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/shadow"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/internal/child"
)

// shadowedBody makes what the other operator makes.
const shadowedBody = `#Spec: {image: string, extra: *false | bool}
live: _
_name: cr.metadata.name
components: base: objects: {
	config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(_name)-config", data: mode: "fast"}
	token: {apiVersion: "v1", kind: "Secret", metadata: name: "\(_name)-token", data: token: "Y2FuYXJ5LW9mLXRoZS1vdGhlcg=="}
}
components: web: {
	dependsOn: base: {}
	objects: deployment: {
		apiVersion: "apps/v1", kind: "Deployment", metadata: name: _name
		spec: {
			selector: matchLabels: app: _name
			template: {metadata: labels: app: _name, spec: containers: [{name: "web", image: cr.spec.image, resources: requests: cpu: "1000m"}]}
		}
	}
	objects: service: {
		apiVersion: "v1", kind: "Service", metadata: name: _name
		spec: {selector: app: _name, ports: [{name: "http", port: 80}]}
	}
}
components: after: objects: ref: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(_name)-ref", data: uid: live.web.deployment.metadata.uid}
`

// shadowedMistakes are what the author has got wrong at first.
var shadowedMistakes = strings.NewReplacer(
	`\(_name)-config`, `\(_name)-settings`, `image: cr.spec.image`, `image: "web:0"`, `port: 80`, `port: 8080`,
	"Y2FuYXJ5LW9mLXRoZS1vdGhlcg==", "Y2FuYXJ5LW9mLW1pbmU=",
)

// A shadowing is a running operetta run --shadow -o json.
type shadowing struct {
	*child.Process

	s    *env
	user string
	from controlplane.AuditMark
}

// reviewer applies the roles that operetta rbac --shadow prints, and returns a user who has them and nothing else.
func (s *env) reviewer(p *testPackage) (user, kubeconfig string) {
	s.T.Helper()
	cmd := exec.CommandContext(s.T.Context(), harness.Suite.Operetta, "rbac", "--shadow", p.Dir, "-n", s.Namespace, "--service-account", s.Namespace+"/reviewer")
	roles, err := cmd.Output()
	if err != nil {
		s.T.Fatalf("operetta rbac --shadow: %v%s", err, harness.StderrOf(err))
	}
	file := filepath.Join(s.T.TempDir(), "roles.yaml")
	harness.WriteFile(s.T, file, string(roles))
	s.Kubectl("apply", "-f", file)
	user = "system:serviceaccount:" + s.Namespace + ":reviewer"
	if kubeconfig, err = harness.Suite.ControlPlane.KubeconfigFor(user); err != nil {
		s.T.Fatal(err)
	}
	return user, kubeconfig
}

// shadow starts a shadow as a user. It is ended with the test.
func (s *env) shadow(user, kubeconfig string, args ...string) *shadowing {
	s.T.Helper()
	from := harness.MarkAudit(s.T)
	all := append([]string{"run", "--shadow", "-o", "json", "--kubeconfig", kubeconfig, "-n", s.Namespace}, args...)
	process, err := child.Start(exec.Command(harness.Suite.Operetta, all...))
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() {
		process.Kill()
		if s.T.Failed() {
			s.T.Logf("the shadow has printed:\n%s", process.Log.Tail(60))
		}
	})
	return &shadowing{process, s, user, from}
}

// A shadowLine is a line of a shadow.
type shadowLine struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	shadow.Resource
	All int `json:"all"`
}

// lines returns what the shadow has printed since a position.
func (x *shadowing) lines(since int) []shadowLine {
	var out []shadowLine
	for line := range strings.Lines(x.Log.From(since)) {
		var l shadowLine
		if json.Unmarshal([]byte(line), &l) == nil {
			out = append(out, l)
		}
	}
	return out
}

// expect waits until the last line about a resource satisfies a check.
func (x *shadowing) expect(name string, check func(shadow.Resource) error) {
	x.s.T.Helper()
	harness.Eventually(x.s.T, "the shadow to say something of "+name, func() error {
		err := fmt.Errorf("it has said nothing of it")
		for _, l := range x.lines(0) {
			if l.Type == "resource" && l.Name == name {
				err = check(l.Resource)
			}
		}
		return err
	})
}

// expectState waits until a resource has a state.
func (x *shadowing) expectState(name string, want shadow.State) {
	x.s.T.Helper()
	x.expect(name, func(r shadow.Resource) error {
		if r.State != want {
			return fmt.Errorf("it is %s: %s", r.State, r.Headline())
		}
		return nil
	})
}

// expectNoWrite fails the test if the shadow has sent anything but reads, or shows what a Secret has.
func (x *shadowing) expectNoWrite() {
	x.s.T.Helper()
	all := x.s.RequestsOf(x.from, x.user)
	others := all.Filter(func(e controlplane.AuditEvent) bool {
		return !slices.Contains([]string{"get", "list", "watch"}, e.Verb)
	})
	if len(all) == 0 || len(others) > 0 {
		x.s.T.Errorf("the shadow has sent %s, among them no reads: %s", all, others)
	}
	for _, word := range []string{"canary", "Y2FuYXJ5"} {
		if strings.Contains(x.Log.From(0), word) {
			x.s.T.Errorf("the shadow shows what a Secret has:\n%s", x.Log.From(0))
		}
	}
}

// described returns the objects that are not the same, and their fields.
func described(r shadow.Resource) []string {
	var out []string
	for _, o := range r.Objects {
		out = append(out, fmt.Sprintf("%s %s %s%s", o.Relation, o.Kind, o.Name, map[bool]string{true: " like " + o.Alike}[o.Alike != ""]))
		for _, f := range o.Fields {
			out = append(out, f.String())
		}
	}
	return out
}

func TestAKindIsTakenOverOnceItsShadowIsTheSame(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "shadowed", shadowedMistakes.Replace(shadowedBody))
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	stopOther := s.startOther(p)
	one := s.Create(p.Thing(s.Env, "one", map[string]any{"image": "web:1"}))
	s.Create(p.Thing(s.Env, "two", map[string]any{"image": "web:2"}))
	for _, name := range []string{"one-ref", "two-ref"} {
		s.ExpectObject(s.Ref("ConfigMap", name), "to be made by the other operator", harness.Exists)
	}
	user, kubeconfig := s.reviewer(p)
	x := s.shadow(user, kubeconfig, "--until-same", "--timeout", "10m", p.Dir)
	want := []string{
		"missing ConfigMap one-settings like ConfigMap " + s.Namespace + "/one-config",
		"unrendered ConfigMap one-config",
		"different Deployment one", `spec.template.spec.containers[name=web].image: live "web:1", wanted "web:0" (manager ` + otherName + ")",
		"different Secret one-token", "data.token: live ***, wanted *** (another) (manager " + otherName + ")",
		"different Service one", `spec.ports[port=8080].name: live (none), wanted "http"`, "spec.ports[port=8080].port: live (none), wanted 8080",
	}
	x.expect("one", func(r shadow.Resource) error {
		if diff := cmp.Diff(want, described(r)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	x.expectState("two", shadow.Different)

	// The author mends the package, and edits of the live objects are followed.
	harness.WriteFile(t, filepath.Join(p.Dir, p.Name+".cue"), strings.ReplaceAll(harness.TestPackageHead+shadowedBody, "NAME", p.Name))
	if code := x.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x.expectState("one", shadow.Same)
	x.expectState("two", shadow.Same)
	x.expectNoWrite()
	s.expectHandover(p, one, stopOther)
}

// expectHandover stops the other operator and lets this one adopt what it has made: nothing is replaced.
func (s *env) expectHandover(p *testPackage, one *unstructured.Unstructured, stopOther func()) {
	s.T.Helper()
	before := s.Get("Deployment", "one")
	stopOther()
	adopting := `components: base: policy: {config: adopt: true, token: adopt: true}
components: web: policy: {deployment: adopt: true, service: adopt: true}
components: after: policy: ref: adopt: true
`
	harness.WriteFile(s.T, filepath.Join(p.Dir, "adopt.cue"), "package "+p.Name+"\n\n"+adopting)
	s.StartOperator(p.Dir)
	s.ExpectResourceReady(one)
	after := s.Get("Deployment", "one")
	if before.GetUID() != after.GetUID() {
		s.T.Errorf("the Deployment was replaced: UID %s, %s", before.GetUID(), after.GetUID())
	}
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		s.T.Errorf("the Deployment is another one, although the shadow has said that it is the same (-before +after):\n%s", diff)
	}
	if after.GetLabels()["operetta.dev/owner"] == "" {
		s.T.Error("the Deployment is not taken over")
	}
}

func TestAShadowFollowsWhatHappens(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "followed", shadowedBody)
	user, kubeconfig := s.reviewer(p)
	x := s.shadow(user, kubeconfig, p.Dir)
	x.Log.Tail(1)
	harness.Eventually(t, "a note that the kind is not served", func() error {
		if !strings.Contains(x.Log.From(0), "does not serve followed.example.com/v1 Thing") {
			return harness.ErrNotYet
		}
		return nil
	})
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	s.startOther(p)
	one := s.Create(p.Thing(s.Env, "one", map[string]any{"image": "web:1"}))
	x.expectState("one", shadow.Same)

	s.Patch(s.Ref("ConfigMap", "one-config"), map[string]any{"data": map[string]any{"mode": "slow"}})
	x.expectState("one", shadow.Different)
	s.Patch(s.Ref("ConfigMap", "one-config"), map[string]any{"data": map[string]any{"mode": "fast"}})
	x.expectState("one", shadow.Same)

	extra := s.ConfigMap("one-extra", nil)
	extra.SetLabels(map[string]string{"belongs-to": string(one.GetUID())})
	s.Create(extra)
	x.expect("one", func(r shadow.Resource) error {
		if len(r.Objects) != 1 || r.Objects[0].Relation != shadow.Unrendered || r.Objects[0].Name != "one-extra" {
			return fmt.Errorf("got %q", described(r))
		}
		return nil
	})
	s.Delete(extra)
	x.expectState("one", shadow.Same)

	broken := filepath.Join(p.Dir, "broken.cue")
	harness.WriteFile(t, broken, "package "+p.Name+"\n\ncomponents: web: objects: deployment: spec: replicas: \"x\" & 1\n")
	harness.Eventually(t, "a note that the package is broken", func() error {
		if !strings.Contains(x.Log.From(0), "the changed package is broken") {
			return harness.ErrNotYet
		}
		return nil
	})
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	s.Delete(one)
	harness.Eventually(t, "the resource to be gone", func() error {
		if !strings.Contains(x.Log.From(0), `"type":"gone"`) {
			return harness.ErrNotYet
		}
		return nil
	})
	x.expectNoWrite()
}

// TestAShadowOfWhatThisEngineRunsIsTheSame has a user who may list everything: the ReplicaSets have the annotations of
// their Deployment, and the API server warns of kinds that nobody should use any more.
func TestAShadowOfWhatThisEngineRunsIsTheSame(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "mirrored", shadowedBody)
	s.StartOperator(p.Dir)
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "one", map[string]any{"image": "web:1"})))
	x := s.shadow("", harness.Suite.ControlPlane.Kubeconfig(), "--until-same", "--timeout", "2m", p.Dir)
	if code := x.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x.expectState("one", shadow.Same)
	if log := x.Log.From(0); strings.Contains(log, "Warning:") {
		t.Errorf("it passes warnings on that are about nothing it does:\n%s", log)
	}
}
