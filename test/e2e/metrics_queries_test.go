package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/test/harness"
	"operetta.dev/test/internal/dashboard"
	"sigs.k8s.io/yaml"
)

// A prometheusRule is the resource of alerts, as far as this test reads it.
type prometheusRule struct {
	Spec struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string } `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

// A serviceMonitor says how the operator of Prometheus scrapes, as far as this test reads it.
type serviceMonitor struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Endpoints []struct {
			Scheme, Path string
			HonorLabels  bool
		} `json:"endpoints"`
	} `json:"spec"`
}

// A queried is what a query came to, as test/promql says it.
type queried struct {
	Query, Error string
	Unmatched    []string
	Samples      []struct {
		Labels map[string]string
		Value  string
	}
	Lines []struct {
		Labels map[string]string
		Unix   []int64
		Values []string
	}
}

func TestF42W52EveryQueryOfTheDashboardAndTheAlertsRunsOnAScrape(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "queried", measuredBody)
	o := s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "slow", map[string]any{}))
	s.ExpectNotReady(cr, "NotReady", "gate")
	first := o.Metrics()
	bad := p.Thing(s.Env, "stranger", map[string]any{})
	owner := s.Create(s.ConfigMap("theirs", map[string]any{}))
	taken := s.ConfigMap("stranger-c", map[string]any{})
	taken.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: owner.GetUID(), Controller: new(true)}})
	s.Create(taken)
	s.ExpectNotReady(s.Create(bad), "OwnedByAnother")
	refusing, far := refusedOperator(s)
	packages := s.StartPackageOperator()
	broken := s.NewPackageObject("queriedbroken")
	broken.Apply(broken.InlineBody("nonsense: 1"))
	broken.Expect("Ready", "False", "PackageBroken")

	rules := readConfig[prometheusRule](t, "prometheus/rules.yaml")
	dash, err := dashboard.Read(filepath.Join(harness.Suite.Root, "config/grafana/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		drawDashboard(t, dash)
	}
	queries := panelQueries(dash)
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			queries["alert "+r.Alert] = r.Expr
		}
	}
	if len(queries) < 20 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	// The scrapes are taken for those of two hours later, so that what waits has waited for long.
	later := time.Now().Add(2 * time.Hour)
	results := promql(t, []scraped{
		{"operetta-0", later.Add(-time.Minute), first}, {"operetta-0", later, o.Metrics()}, {"operetta-1", later, refusing.Metrics()}, {"operetta-2", later, packages.Metrics()},
	}, 0, queries)
	firing := map[string]bool{}
	for name, query := range queries {
		r := results[query]
		// Nothing is absent if something is scraped, so this one selects nothing that is shown.
		if r.Error != "" || len(r.Unmatched) > 0 {
			t.Errorf("%s: %s\nerror %q, and these match nothing: %q", name, query, r.Error, r.Unmatched)
		}
		if strings.HasPrefix(name, "panel ") && len(r.Samples) == 0 {
			t.Errorf("%s is empty: %s", name, query)
		}
		if strings.HasPrefix(name, "alert ") && len(r.Samples) > 0 {
			firing[strings.TrimPrefix(name, "alert ")] = true
		}
	}
	for alert, want := range map[string]bool{"OperettaResourcesFailed": true, "OperettaComponentWaitsForLong": true, "OperettaNamespaceRefused": true, "OperettaPackageNotReady": true, "OperettaAbsent": false, "OperettaQueueGrows": false, "OperettaTemplateDiffers": false} {
		if firing[alert] != want {
			t.Errorf("%s is %v, want %v", alert, firing[alert], want)
		}
	}
	// An alert names the namespace that the metric is about, and not that of the operator, which each target has as a label.
	for alert, want := range map[string]string{"OperettaComponentWaitsForLong": s.Namespace, "OperettaNamespaceRefused": far} {
		for _, sample := range results[queries["alert "+alert]].Samples {
			if got := sample.Labels["namespace"]; got != want {
				t.Errorf("%s is about namespace %q, want %q", alert, got, want)
			}
		}
	}
}

// refusedOperator starts an operator that lacks its role in one of its two namespaces. It returns that one, too.
func refusedOperator(s *env) (o *harness.Operator, far string) {
	s.T.Helper()
	far = s.OtherNamespace()
	other := s.As("refused")
	p := newTestPackage(s.T, "queriedrefused", note("a"))
	other.RestrictOperator(append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"))...)
	o = other.StartRestrictedOperator(p.TestPackage, "--namespace="+s.Namespace+","+far)
	harness.Eventually(s.T, "a metric that names the namespace", func() error {
		return missingSeries(o.Metrics(), []string{"operetta_namespaces_refused{", fmt.Sprintf("controller=%q", p.Controller()), fmt.Sprintf("namespace=%q", far), "} 1"})
	})
	return o, far
}

// readConfig reads a file in YAML or JSON, of which only the first document counts.
func readConfig[T any](t *testing.T, name string) (out T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(harness.Suite.Root, "config", name))
	if err == nil {
		first, _, _ := bytes.Cut(b, []byte("\n---\n"))
		err = yaml.Unmarshal(first, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A scraped is what a pod has answered at a time.
type scraped struct {
	pod  string
	at   time.Time
	text string
}

// promql runs queries with Prometheus on scrapes, at the time of the last one, and over the time in steps if there is such.
func promql(t *testing.T, scrapes []scraped, step time.Duration, queries map[string]string) map[string]queried {
	t.Helper()
	rules := readConfig[struct {
		Spec json.RawMessage `json:"spec"`
	}](t, "prometheus/rules.yaml")
	monitor := readConfig[serviceMonitor](t, "prometheus/monitor.yaml")
	type scrape struct {
		Unix   int64             `json:"unix"`
		Text   string            `json:"text"`
		Target map[string]string `json:"target"`
	}
	request := struct {
		Rules       string   `json:"rules"`
		Scrapes     []scrape `json:"scrapes"`
		HonorLabels bool     `json:"honorLabels"`
		Queries     []string `json:"queries"`
		Step        int64    `json:"step"`
	}{Rules: string(rules.Spec), HonorLabels: monitor.Spec.Endpoints[0].HonorLabels, Step: int64(step.Seconds())}
	for _, one := range scrapes {
		// The labels that the operator of Prometheus gives to a target of a Service.
		request.Scrapes = append(request.Scrapes, scrape{one.at.Unix(), one.text, map[string]string{
			"namespace": monitor.Metadata.Namespace, "service": "operetta-metrics", "job": "operetta-metrics", "endpoint": "metrics",
			"pod": one.pod, "container": "operetta", "instance": one.pod + ":8080",
		}})
	}
	for _, q := range queries {
		request.Queries = append(request.Queries, q)
	}
	cmd := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(harness.Suite.Root, "test/promql"), "run", ".")
	cmd.Stdin = bytes.NewReader(harness.Encode(t, request))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v%s", err, harness.StderrOf(err))
	}
	var answer struct{ Results []queried }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	results := map[string]queried{}
	for _, r := range answer.Results {
		results[r.Query] = r
	}
	return results
}
