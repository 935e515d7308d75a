package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/plan"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// plannedBody has an object for each thing that the next version does.
const plannedBody = `#Spec: size: int & <=9
live: _
components: base: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-settings", data: {mode: "fast", token: "\(cr.spec.size)"}}
components: old: objects: gone: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-gone"}
components: secret: objects: token: {apiVersion: "v1", kind: "Secret", metadata: name: "\(cr.metadata.name)-token", stringData: token: "canary-of-the-plan"}
components: web: {
	dependsOn: base: {}
	policy: job: apply: "recreateOnImmutable"
	objects: job: {
		apiVersion: "batch/v1", kind: "Job", metadata: name: cr.metadata.name
		spec: {suspend: true, completions: 1, template: spec: {restartPolicy: "Never", containers: [{name: "web", image: "web:1"}]}}
	}
	policy: job: verify: "exists"
}
`

// plannedEdits make the next version of plannedBody.
var plannedEdits = strings.NewReplacer(
	`mode: "fast"`, `mode: "safe"`, "<=9", "<=5", `image: "web:1"`, `image: "web:2"`,
	`name: "\(cr.metadata.name)-gone"`, `name: "\(cr.metadata.name)-new"`,
)

// planned runs operetta plan as a user of its own, and returns the plan. It fails the test if the user wrote
// anything.
func (s *env) planned(code int, args ...string) plan.Plan {
	s.T.Helper()
	user := "planner:" + s.Namespace
	kubeconfig, err := harness.Suite.ControlPlane.KubeconfigFor(user, "system:masters")
	if err != nil {
		s.T.Fatal(err)
	}
	from := harness.MarkAudit(s.T)
	cmd := exec.CommandContext(s.T.Context(), harness.Suite.Operetta, append([]string{"plan", "-o", "json", "--kubeconfig", kubeconfig, "-n", s.Namespace}, args...)...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		s.T.Fatalf("operetta plan: exit code %v, want %d: %v\n%s\n%s", cmd.ProcessState, code, err, said.String(), out)
	}
	if strings.Contains(said.String()+string(out), "canary-of-the-plan") {
		s.T.Errorf("the plan shows what a Secret holds:\n%s", out)
	}
	if all := s.RequestsOf(from, user); len(all) == 0 || len(all.Mutating()) > 0 {
		s.T.Errorf("the plan has sent %s, among them writes: %s", all, all.Mutating())
	}
	var p plan.Plan
	if err := json.Unmarshal(out, &p); err != nil {
		s.T.Fatal(err)
	}
	return p
}

// happens returns what is to happen to objects, in the words of the audit log.
func happens(p plan.Plan) []string {
	var out []string
	for _, r := range p.Resources {
		for _, o := range r.Objects {
			verbs := map[string][]string{"created": {"patch"}, "updated": {"patch"}, "deleted": {"delete"}, "recreated": {"delete", "patch"}}[string(o.Outcome)]
			for _, verb := range verbs {
				out = append(out, verb+" "+strings.ToLower(o.Kind)+"s "+o.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestWhatHappensIsWhatThePlanSays(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "planned", plannedBody)
	s.StartOperator(p.Dir)
	one := s.Create(p.Thing(s.Env, "one", map[string]any{"size": int64(3)}))
	two := s.Create(p.Thing(s.Env, "two", map[string]any{"size": int64(7)}))
	s.ExpectResourceReady(one)
	served := s.ExpectResourceReady(two)
	s.WaitUntilIdle()

	if got := s.planned(0, p.Dir); got.Changes() || len(got.Resources) != 2 {
		t.Errorf("the package that is served changes something: %+v", got)
	}
	next := newTestPackage(t, "planned", plannedEdits.Replace(plannedBody))
	want := s.planned(2, next.Dir)
	classes := map[string]plan.Class{}
	for _, r := range want.Resources {
		classes[r.Name] = r.Class
	}
	if diff := cmp.Diff(map[string]plan.Class{"one": plan.Changed, "two": plan.Invalid}, classes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	foreseen := []string{
		"delete configmaps one-gone", "delete jobs one", "patch configmaps one-new", "patch configmaps one-settings", "patch jobs one",
	}
	if diff := cmp.Diff(foreseen, happens(want)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	compared := s.planned(2, next.Dir, "--old", p.Dir)
	if diff := cmp.Diff(want.Resources, compared.Resources); diff != "" {
		t.Errorf("nobody has edited anything, so --old makes no difference (-without +with):\n%s", diff)
	}

	from := harness.MarkAudit(t)
	copyText(t, next.Dir, p.Dir)
	s.ExpectObject(two, "to be served by the new version", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "package", "digest") == harness.Field(served, "status", "package", "digest") {
			return harness.ErrNotYet
		}
		return nil
	})
	s.ExpectNotReady(two, "InvalidSpec", "size")
	s.ExpectGone(s.Ref("ConfigMap", "one-gone"))
	s.ExpectResourceReady(one)
	s.WaitUntilIdle()
	writes := s.OperatorRequests(from).Writes().Filter(func(e controlplane.AuditEvent) bool {
		return e.Subresource == "" && e.Namespace == s.Namespace && e.Resource != "things" && e.Resource != "leases"
	})
	var got []string
	for _, e := range writes {
		verb := e.Verb
		if verb == "create" {
			verb = "patch"
		}
		got = append(got, verb+" "+e.Resource+" "+e.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(foreseen, slices.Compact(got)); diff != "" {
		t.Errorf("what happened is not what the plan says (-plan +audit log):\n%s", diff)
	}
	if again := s.planned(0, p.Dir); again.Changes() {
		t.Errorf("after it has happened, something is left to do: %+v", again)
	}
}

// copyText copies the CUE files of a folder over those of another one.
func copyText(t *testing.T, from, to string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(from, "*.cue"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", from, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(f)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADumpOfAClusterPlansAsTheCluster(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "dumped", plannedBody)
	s.StartOperator(p.Dir)
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "one", map[string]any{"size": int64(3)})))
	s.WaitUntilIdle()
	next := newTestPackage(t, "dumped", plannedEdits.Replace(plannedBody))
	file := filepath.Join(t.TempDir(), "dump.tar.gz")
	if text, code := s.operettaAs(s.AdminKubeconfig(), "dump", next.Dir, "-o", file); code != 0 {
		t.Fatalf("operetta dump: exit code %d: %s", code, text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	want := s.planned(2, next.Dir)
	out, err := exec.CommandContext(t.Context(), harness.Suite.Operetta, "plan", next.Dir, "--from", file, "-o", "json").Output()
	var got plan.Plan
	if decoded := json.Unmarshal(out, &got); decoded != nil {
		t.Fatalf("operetta plan --from: %v, %v: %s", err, decoded, out)
	}
	want.Notes = []string{"the dump has the resources in the namespace " + s.Namespace + " alone"} // the dump says how far it reaches
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-cluster +dump):\n%s", diff)
	}
}
