package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/docs/internal/registered"
)

// metricsBegin is where the generated part of docs/metrics.md begins.
const metricsBegin = "<!-- generated: go test ./test/docs -run Metrics -update -->\n"

func TestThePageOfMetricsHasWhatIsRegistered(t *testing.T) {
	all := registeredMetrics(t)
	libraries := func(m metric) bool { return !m.own() }
	own := slices.DeleteFunc(slices.Clone(all), libraries)
	others := slices.DeleteFunc(slices.Clone(all), metric.own)
	if len(own) < 15 || len(others) < 10 {
		t.Fatalf("%d metrics of the engine and %d of libraries are registered", len(own), len(others))
	}
	want := "\n## Its own\n\n" + tableOf(own) + "\n## Those of the libraries\n\n" + tableOf(others)
	name := filepath.Join(root, "docs/metrics.md")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, got, found := strings.Cut(string(b), metricsBegin)
	if !found {
		t.Fatalf("docs/metrics.md has no line %q", strings.TrimSpace(metricsBegin))
	}
	if *update {
		if err := os.WriteFile(name, []byte(head+metricsBegin+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/metrics.md is not what is registered; go test ./test/docs -run Metrics -update writes it (-want +got):\n%s", diff)
	}
}

// A metric is the description of one, as it is registered.
type metric struct {
	name, help string
	labels     []string
}

// own reports whether the engine has defined a metric.
func (m metric) own() bool {
	return strings.HasPrefix(m.name, "operetta_") || strings.HasPrefix(m.name, "reconcile_")
}

// kind returns the type of a metric, which a description lacks. What names it is a convention, and test/e2e
// compares it with a scrape.
func (m metric) kind() string {
	switch {
	case strings.HasSuffix(m.name, "_total"):
		return "counter"
	case m.name == "operetta_worker_evaluations", strings.HasSuffix(m.name, "_duration_seconds"),
		strings.HasSuffix(m.name, "_time_seconds"), strings.HasSuffix(m.name, "_wait_seconds"), strings.HasSuffix(m.name, "_latency_seconds"):
		return "histogram"
	}
	return "gauge"
}

// description matches the text of a prometheus.Desc, which has no other accessor.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "(.*)", unit: "[^"]*", constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

// registeredMetrics returns the metrics of the registry that an operator serves, but for those of Go and of the process.
func registeredMetrics(t *testing.T) []metric {
	t.Helper()
	descs, err := registered.Descriptions()
	if err != nil {
		t.Fatal(err)
	}
	var out []metric
	for _, d := range descs {
		parts := description.FindStringSubmatch(d.String())
		if parts == nil {
			t.Fatalf("a description is %s", d)
		}
		m := metric{name: parts[1], help: strings.ReplaceAll(parts[2], `\"`, `"`)}
		for label := range strings.SplitSeq(parts[3], ",") {
			if label != "" {
				m.labels = append(m.labels, strings.TrimSuffix(strings.TrimPrefix(label, "c("), ")"))
			}
		}
		if !strings.HasPrefix(m.name, "go_") && !strings.HasPrefix(m.name, "process_") {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return out
}

// tableOf returns a table of metrics.
func tableOf(all []metric) string {
	var out strings.Builder
	out.WriteString("| metric | type | labels | what it is |\n|---|---|---|---|\n")
	for _, m := range all {
		labels := ""
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", m.name, m.kind(), labels, strings.ReplaceAll(m.help, "|", `\|`))
	}
	return out.String()
}
