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

	"operetta.dev/engine/capsule"
	"operetta.dev/test/harness"
)

// recordedBody makes a Secret, and rolls a Deployment out behind a ConfigMap.
const recordedBody = `
#Spec: size: int | *1
live: _
inputs: given: {apiVersion: "v1", kind: "Secret", name: "given"}
components: settings: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: size: "\(cr.spec.size)"}
components: secret: objects: own: {apiVersion: "v1", kind: "Secret", metadata: name: cr.metadata.name, data: word: inputs.given.object.data.word}
components: web: {
	dependsOn: settings: {}
	objects: deployment: {
		apiVersion: "apps/v1"
		kind:       "Deployment"
		metadata: name: cr.metadata.name
		spec: {
			replicas: cr.spec.size
			selector: matchLabels: app: cr.metadata.name
			template: {metadata: labels: app: cr.metadata.name, spec: containers: [{name: "main", image: "nginx"}]}
		}
	}
}
`

// capsulesOf returns the capsules of a resource below a folder, in order.
func capsulesOf(dir, namespace, name string) []string {
	out, _ := filepath.Glob(filepath.Join(dir, "*", namespace, name, "*.capsule.json"))
	slices.Sort(out)
	return out
}

func TestWhatAnOperatorHasDecidedIsDecidedAgainWithoutItsCluster(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	const word = "canary-of-the-capsules"
	given := s.ConfigMap("given", nil)
	given.SetKind("Secret")
	given.Object["stringData"] = map[string]any{"word": word}
	s.Create(given)
	p := newTestPackage(t, "recorded", recordedBody)
	dir := filepath.Join(t.TempDir(), "capsules")
	s.StartOperator(p.Dir, "--record", dir)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{"size": int64(1)}))
	s.ExpectResourceReady(cr)
	var files []string
	harness.Eventually(t, "the decision by which it is Ready", func() error {
		files = capsulesOf(dir, s.Namespace, "one")
		if len(files) < 2 {
			return harness.ErrNotYet
		}
		c, err := capsule.Read(files[len(files)-1])
		if err != nil {
			return err
		}
		if c.Decision.Status["phase"] != "Ready" {
			return fmt.Errorf("the phase is %v", c.Decision.Status["phase"])
		}
		return nil
	})

	fixed := newTestPackage(t, "recorded", strings.Replace(recordedBody, `image: "nginx"`, `image: "nginx:2"`, 1))
	replay := func(code int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), harness.Suite.Operetta, append([]string{"replay"}, args...)...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")} // there is no cluster
		text, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
			t.Fatalf("operetta replay %v: %v, want exit code %d\n%s", args, err, code, text)
		}
		return string(text)
	}
	applied := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := capsule.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range c.Did {
			applied[a.String()] = true
		}
		if strings.Contains(string(text), "canary") {
			t.Errorf("%s has the word of a Secret", file)
		}
		if got := replay(0, file, p.Dir); !strings.Contains(got, "decided again: the same, byte for byte") || strings.Contains(got, "note:") {
			t.Errorf("%s: got\n%s", file, got)
		}
	}
	for _, a := range []string{"apply ConfigMap ", "apply Secret ", "apply Deployment "} {
		if !applied[a+s.Namespace+"/one"] {
			t.Errorf("no capsule says %s: %v", a, applied)
		}
	}
	var other struct {
		Same        bool                 `json:"same"`
		Differences []capsule.Difference `json:"differences"`
	}
	if err := json.Unmarshal([]byte(replay(2, files[0], "--with", fixed.Dir, "-o", "json")), &other); err != nil || other.Same || len(other.Differences) == 0 {
		t.Errorf("another package decides %+v, %v", other, err)
	}
	if got := replay(1, files[0], fixed.Dir); !strings.Contains(got, "give the folder of that version, or --with") {
		t.Errorf("another version without --with: got\n%s", got)
	}
}
