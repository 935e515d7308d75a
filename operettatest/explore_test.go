package operettatest_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/operettatest"
)

// remembers is a package with a value that depends on which spec was seen first, and its test.
const remembers = `package shop
import "operetta.dev/schemas/operator"
operator.#Controller
group: "example.com", kind: "Shop"
versions: v1: spec: #Spec
#Spec: size: int | *1
cr: spec: #Spec
live: _
components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: first: *live.a.o.data.first | "\(cr.spec.size)"}
`

// number is how many writes a step has.
var number = regexp.MustCompile(`has \d+ writes`)

// TestExploreFailsWithTheScheduleThatEndsOtherwise explores it, and plays schedules by their names.
func TestExploreFailsWithTheScheduleThatEndsOtherwise(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shop")
	err := errors.Join(
		os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "shop.cue"), []byte(remembers), 0o600),
		os.WriteFile(filepath.Join(dir, "shop_test.cue"), []byte("package shop\n\ntests: {\n\tgrows: {given: cr: spec: {}, steps: [{}, {cr: spec: size: 2}]}\n\tstays: given: cr: spec: {}\n}\n"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	failure := `shop_test.cue:4: grows: step 0: crash after write 1, away until the next step
  ConfigMap default/a ends otherwise: data.first: "1" -> "2"
what happens then:
  step 0 begins
  reconcile: no object; it fails
  step 1 begins
  reconcile: create ConfigMap default/a
once more: operettatest.Explore(t, "` + dir + `", operettatest.ExploreOptions{Test: "grows", Schedule: "step 0: crash after write 1, away until the next step"})`
	for name, c := range map[string]struct {
		reason  string
		options operettatest.ExploreOptions
		want    []string
	}{
		"all tests":            {"only one of them depends on the way", operettatest.ExploreOptions{}, []string{failure}},
		"a test that does not": {"", operettatest.ExploreOptions{Test: "stays"}, nil},
		"the schedule":         {"it fails in the same way", operettatest.ExploreOptions{Test: "grows", Schedule: "step 0: crash after write 1, away until the next step"}, []string{failure}},
		"another schedule":     {"it ends in the same state", operettatest.ExploreOptions{Test: "grows", Schedule: "step 0: crash after write 1"}, nil},
		"no schedule":          {"a name that is wrong is no success", operettatest.ExploreOptions{Test: "grows", Schedule: "step 9"}, []string{`shop_test.cue:4: grows: it cannot be explored: it has no schedule "step 9"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			operettatest.Explore(r, dir, c.options)
			if diff := cmp.Diff(c.want, r.failed); diff != "" {
				t.Errorf("%s: failures (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestFaultsAreThoseOfTheTestsInCUE has the operator fail in each way.
func TestFaultsAreThoseOfTheTestsInCUE(t *testing.T) {
	t.Parallel()
	p := operettatest.Load(t, webapp)
	given := operettatest.Given{CR: map[string]any{"spec": map[string]any{"image": "nginx:1.25"}}}
	for name, c := range map[string]struct {
		reason string
		faults operettatest.Faults
		want   []string
	}{
		"it dies":                  {"what is left of it is found", operettatest.Faults{CrashAfter: []int{2, 1, 3}}, nil},
		"a response is lost":       {"the write is seen by the next reconcile", operettatest.Faults{LoseAt: 3}, nil},
		"a write is refused":       {"it is tried again", operettatest.Faults{RefuseAt: 9}, nil},
		"its cache is behind":      {"it catches up, and then the operator rests", operettatest.Faults{FrozenCache: true}, nil},
		"it dies with that":        {"the new process sees the old state, too", operettatest.Faults{FrozenCache: true, CrashAfter: []int{2, 1}}, nil},
		"a crash that never comes": {"a test that shows nothing fails", operettatest.Faults{CrashAfter: []int{999}}, []string{"faults: crash after write 999: that has not happened, the step has N writes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			cluster := p.Open(t, given)
			cluster.Disturb(c.faults)
			cluster.Run(r)
			for i, text := range r.failed {
				r.failed[i] = number.ReplaceAllString(text, "has N writes")
			}
			if diff := cmp.Diff(c.want, r.failed); diff != "" || cluster.Phase() != "Ready" {
				t.Errorf("%s: it is %s, failures (-want +got):\n%s", c.reason, cluster.Phase(), diff)
			}
			r.failed = nil
			if cluster.Run(r); len(r.failed) > 0 {
				t.Errorf("the next run is disturbed, too: %s", r.failed)
			}
		})
	}
}

// TestAFrozenCacheDoesNotShowTheChange changes the resource behind it.
func TestAFrozenCacheDoesNotShowTheChange(t *testing.T) {
	t.Parallel()
	c := operettatest.Load(t, webapp).Open(t, operettatest.Given{CR: map[string]any{"spec": map[string]any{"image": "nginx:1.25"}}})
	c.Run(t)
	replicas := func() any {
		spec, _ := c.Live(t, "web", "deployment")["spec"].(map[string]any)
		return spec["replicas"]
	}
	cr := c.CR()
	cr["spec"] = map[string]any{"image": "nginx:1.25", "replicas": 5}
	c.Disturb(operettatest.Faults{FrozenCache: true})
	c.Put(t, cr)
	c.RunOnce(t)
	if got := replicas(); got != int64(3) {
		t.Errorf("%v replicas with a cache that shows the old spec, want 3", got)
	}
	c.Run(t)
	if got := replicas(); got != int64(5) {
		t.Errorf("%v replicas after that, want 5", got)
	}
	cr = c.CR()
	cr["spec"] = map[string]any{"image": "nginx:1.25", "replicas": 7}
	c.Disturb(operettatest.Faults{FrozenCache: true})
	c.Put(t, cr)
	c.Run(t)
	if got := replicas(); got != int64(7) || c.Phase() != "Ready" {
		t.Errorf("%v replicas once the cache has caught up, and it is %s, want 7 and Ready", got, c.Phase())
	}
}
