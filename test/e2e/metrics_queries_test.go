package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/test/harness"
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

// A dashboard is one of Grafana, as far as this test reads it.
type dashboard struct {
	Panels []struct {
		Title   string                  `json:"title"`
		Targets []struct{ Expr string } `json:"targets"`
	} `json:"panels"`
}

// A queried is what a query came to, as test/promql says it.
type queried struct {
	Query, Error string
	Unmatched    []string
	Samples      []struct {
		Labels map[string]string
		Value  string
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

	rules, dash := readRules(t), readDashboard(t)
	queries := map[string]string{}
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			queries["alert "+r.Alert] = r.Expr
		}
	}
	for _, panel := range dash.Panels {
		for i, target := range panel.Targets {
			queries["panel "+panel.Title+string(rune('A'+i))] = strings.NewReplacer("$__rate_interval", "5m", "$controller", ".*").Replace(target.Expr)
		}
	}
	if len(queries) < 20 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	results := promql(t, []string{first, o.Metrics()}, queries)
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
	// The scrape is taken for one that is two hours old, so that what waits has waited for long.
	for alert, want := range map[string]bool{"OperettaResourcesFailed": true, "OperettaComponentWaitsForLong": true, "OperettaAbsent": false, "OperettaQueueGrows": false, "OperettaTemplateDiffers": false} {
		if firing[alert] != want {
			t.Errorf("%s is %v, want %v", alert, firing[alert], want)
		}
	}
}

func readRules(t *testing.T) (out prometheusRule) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(harness.Suite.Root, "config/prometheus/rules.yaml"))
	if err == nil {
		err = yaml.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readDashboard(t *testing.T) (out dashboard) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(harness.Suite.Root, "config/grafana/dashboard.json"))
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// promql runs queries with Prometheus on scrapes, of which the last one is taken for one in two hours.
func promql(t *testing.T, scrapes []string, queries map[string]string) map[string]queried {
	t.Helper()
	var raw struct {
		Spec json.RawMessage `json:"spec"`
	}
	b, err := os.ReadFile(filepath.Join(harness.Suite.Root, "config/prometheus/rules.yaml"))
	if err == nil {
		err = yaml.Unmarshal(b, &raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	type scrape struct {
		Unix int64  `json:"unix"`
		Text string `json:"text"`
	}
	request := struct {
		Rules   string   `json:"rules"`
		Scrapes []scrape `json:"scrapes"`
		Queries []string `json:"queries"`
	}{Rules: string(raw.Spec)}
	later := time.Now().Add(2 * time.Hour)
	for i, text := range scrapes {
		request.Scrapes = append(request.Scrapes, scrape{later.Add(time.Duration(i+1-len(scrapes)) * time.Minute).Unix(), text})
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
