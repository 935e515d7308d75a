package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"operetta.dev/test/harness"
)

const measuredBody = `
live: _
#Spec: {}

components: {
	config: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-c"}
	gate: {
		dependsOn: config: {}
		objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-gate"}
		verify: open: live.gate.c.data.open == "yes"
	}
	last: {
		dependsOn: gate: {}
		objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-last"}
	}
}
`

func TestF36W48W49W50W51MetricsSayWhatWaitsUntilItDoesNot(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "measured", measuredBody)
	o := s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "slow", map[string]any{}))
	s.ExpectNotReady(cr, "NotReady", "gate")
	controller := fmt.Sprintf("controller=%q", p.Controller())
	scrape := func(what string, lines ...[]string) {
		t.Helper()
		harness.Eventually(t, what, func() error { return missingSeries(o.Metrics(), lines...) })
	}
	scrape("series of a resource that waits",
		[]string{"operetta_resources{", controller, `phase="Waiting"`, "} 1"},
		[]string{"operetta_components{", controller, `component="gate"`, `state="Applied"`, "} 1"},
		[]string{"operetta_component_waiting_since_timestamp_seconds{", controller, `component="last"`, `name="slow"`, `reason="WaitingForDependency"`, fmt.Sprintf("namespace=%q", s.Namespace)},
		[]string{"reconcile_total{", controller, `result="success"`},
		[]string{"reconcile_errors_total{", controller, "} 0"},
		[]string{"reconcile_duration_seconds_count{", controller},
		[]string{"workqueue_depth{", controller},
		[]string{"operetta_workqueue_parked{", controller, "} 0"},
		[]string{"operetta_evaluation_duration_seconds_count{", `by="cue"`},
		[]string{"operetta_resources_by_package_digest{", controller, "} 1"},
		[]string{"operetta_api_requests_total{", `resource="configmaps"`, `verb="apply"`, `code="201"`},
		[]string{"operetta_api_requests_total{", `resource="things.measured.example.com/status"`, `verb="apply"`},
		[]string{"operetta_api_requests_total{", `resource="configmaps"`, `verb="watch"`},
	)

	s.Patch(s.Ref("ConfigMap", "slow-gate"), map[string]any{"data": map[string]any{"open": "yes"}})
	s.ExpectResourceReady(cr)
	scrape("series of a resource that is Ready",
		[]string{"operetta_resources{", controller, `phase="Ready"`, "} 1"},
		[]string{"operetta_components{", controller, `component="last"`, `state="Verified"`, "} 1"},
	)
	gone := func(prefix string) {
		t.Helper()
		harness.Eventually(t, "no series "+prefix, func() error {
			for line := range harness.Lines(o.Metrics(), prefix) {
				if strings.Contains(line, controller) {
					return errors.New(line)
				}
			}
			return nil
		})
	}
	gone("operetta_component_waiting_since_timestamp_seconds{")
	s.Delete(cr)
	s.ExpectGone(cr)
	gone("operetta_components{")
	scrape("no resources", []string{"operetta_resources{", controller, `phase="Ready"`, "} 0"})
	expectDocumented(t, o.Metrics())
}

// missingSeries errors with the first list of parts that no line of a scrape has.
func missingSeries(scrape string, lines ...[]string) error {
	for _, parts := range lines {
		found := false
		for line := range strings.Lines(scrape) {
			found = found || strings.HasPrefix(line, parts[0]) && harness.ContainsAll(strings.TrimSpace(line)+"\n", parts)
		}
		if !found {
			return fmt.Errorf("no series has %q", parts)
		}
	}
	return nil
}

// documented matches a row of a table of docs/metrics.md.
var documented = regexp.MustCompile("^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\|")

// expectDocumented compares the types in a scrape with those in docs/metrics.md.
func expectDocumented(t *testing.T, scrape string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(harness.Suite.Root, "docs/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if row := documented.FindStringSubmatch(line); row != nil {
			types[row[1]] = row[2]
		}
	}
	compared := 0
	lines := bufio.NewScanner(strings.NewReader(scrape))
	for lines.Scan() {
		var name, kind string
		if n, _ := fmt.Sscanf(lines.Text(), "# TYPE %s %s", &name, &kind); n != 2 || strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		compared++
		if types[name] != kind {
			t.Errorf("%s is a %s, and docs/metrics.md says %q", name, kind, types[name])
		}
	}
	if compared < 20 {
		t.Errorf("only %d metrics were compared", compared)
	}
}
