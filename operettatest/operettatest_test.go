package operettatest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/operettatest"
)

const webapp = "../cue/webapp"

// TestATableInGoDecidesAsTheOperatorDoes is a table as an author writes one.
func TestATableInGoDecidesAsTheOperatorDoes(t *testing.T) {
	t.Parallel()
	p := operettatest.Load(t, webapp)
	for replicas, fault := range map[int]string{1: "", 3: "", 100: "", 101: "spec.replicas"} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			t.Parallel()
			d := p.Preview(t, operettatest.Given{CR: map[string]any{"spec": map[string]any{"image": "nginx:1.25", "replicas": replicas}}})
			if fault != "" {
				if len(d.Faults) != 1 || !strings.Contains(d.Faults[0], fault) {
					t.Errorf("faults %q, want one of %s", d.Faults, fault)
				}
				return
			}
			spec, _ := d.Object("web", "deployment")["spec"].(map[string]any)
			if diff := cmp.Diff(any(int64(replicas)), spec["replicas"]); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
			if got := d.Components["web"].State; got != "Waiting" {
				t.Errorf("web is %s, want it to wait for its configuration", got)
			}
			if d.Phase != "Reconciling" {
				t.Errorf("the phase is %q, want Reconciling: the configuration is to be written", d.Phase)
			}
		})
	}
}

// TestAClusterInMemoryLivesAsARealOne rolls a resource out, changes it, mends it and deletes it.
func TestAClusterInMemoryLivesAsARealOne(t *testing.T) {
	t.Parallel()
	c := operettatest.Load(t, webapp).Open(t, operettatest.Given{CR: map[string]any{"spec": map[string]any{"image": "nginx:1.25"}}})
	c.Run(t)
	if ready, why := c.Ready(); !ready {
		t.Fatal(why)
	}
	cr := c.CR()
	cr["spec"] = map[string]any{"image": "nginx:1.25", "replicas": 5}
	c.Put(t, cr)
	c.Run(t)
	spec, _ := c.Live(t, "web", "deployment")["spec"].(map[string]any)
	if diff := cmp.Diff(any(int64(5)), spec["replicas"]); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	if state := c.Preview(t).Components["web"].State; state != "Verified" {
		t.Errorf("web is %s", state)
	}
	if c.Phase() != "Ready" {
		t.Errorf("the phase is %q, want Ready", c.Phase())
	}
	c.Delete(t)
	c.Run(t)
	if c.CR() != nil || c.Live(t, "web", "deployment") != nil {
		t.Error("something is left of a deleted resource")
	}
}

// TestTestsInCUEAreSubtests runs the tests of the reference package.
func TestTestsInCUEAreSubtests(t *testing.T) {
	t.Parallel()
	operettatest.Run(t, webapp)
}

// recorder is a test that notes that it has failed.
type recorder struct {
	testing.TB
	failed []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}

// TestWhatIsGivenAndNobodyReadsIsAMistake gives live objects and others that the package does not know.
func TestWhatIsGivenAndNobodyReadsIsAMistake(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	operettatest.Load(t, webapp).Preview(r, operettatest.Given{
		CR:     map[string]any{"spec": map[string]any{"image": "nginx:1.25"}},
		Live:   map[string]map[string]map[string]any{"web": {"deploymnt": {}}},
		Others: []map[string]any{{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "x"}}},
	})
	want := []string{
		"given: web.deploymnt is neither an object of the resource nor an input",
		"given: Secret default/x is neither an object of the resource nor an input",
	}
	if diff := cmp.Diff(want, r.failed); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}
