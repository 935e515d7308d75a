package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/internal/dashboard"
)

// How the picture of the dashboard is recorded: a scrape after each pause, and rates over some of them.
const (
	scrapes     = 75
	scrapePause = 2 * time.Second
	scrapeRate  = 20 * time.Second
)

// drawDashboard writes the picture of the dashboard in the documents, from scrapes of two minutes and a half in which an operator has something
// to do: resources are created, wait, become ready and get another version of their package; one fails.
func drawDashboard(t *testing.T, d dashboard.Dashboard) {
	t.Helper()
	s := newEnv(t)
	p := newTestPackage(t, "shop", measuredBody)
	o := s.StartOperator(p.Dir)
	var all []*unstructured.Unstructured
	happens := func(at int) {
		switch {
		case at < 30 && at%3 == 0:
			all = append(all, s.Create(p.Thing(s.Env, fmt.Sprint("shop-", len(all)+1), map[string]any{})))
		case at == 10:
			owner := s.Create(s.ConfigMap("theirs", map[string]any{}))
			taken := s.ConfigMap("stranger-c", map[string]any{})
			taken.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: owner.GetUID(), Controller: new(true)}})
			s.Create(taken)
			s.Create(p.Thing(s.Env, "stranger", map[string]any{}))
		case at >= 35 && at%3 == 0 && (at-35)/3 < len(all)-2: // two go on waiting
			s.Patch(s.Ref("ConfigMap", all[(at-35)/3].GetName()+"-gate"), map[string]any{"data": map[string]any{"open": "yes"}})
		case at == 61:
			harness.WriteFile(t, filepath.Join(p.Dir, "next.cue"), "package shop\n\ncomponents: config: objects: c: data: version: \"next\"\n")
		}
	}
	var taken []scraped
	tick := time.NewTicker(scrapePause)
	defer tick.Stop()
	for at := range scrapes {
		happens(at)
		// A machine that is busy may take two within a second, which is all that a scrape has of its time.
		if now := time.Now(); len(taken) == 0 || now.Unix() > taken[len(taken)-1].at.Unix() {
			taken = append(taken, scraped{"operetta-0", now, o.Metrics()})
		}
		<-tick.C
	}
	queries := map[string]string{}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			queries[target.Expr] = target.Query(scrapeRate)
		}
	}
	answers := promql(t, taken, scrapePause, queries)
	results := map[string][]dashboard.Series{}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			results[target.Expr] = answers[queries[target.Expr]].series(t, target.Instant)
		}
	}
	picture := dashboard.Draw(d, results, taken[0].at, taken[len(taken)-1].at)
	if err := os.WriteFile(filepath.Join(harness.Suite.Root, "docs/dashboard.svg"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// series returns the result of a query at the end, or over the time.
func (q queried) series(t *testing.T, instant bool) []dashboard.Series {
	t.Helper()
	var out []dashboard.Series
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if instant {
		for _, one := range q.Samples {
			// What tells the pods apart is of no interest in a picture of one.
			for _, name := range []string{"container", "endpoint", "instance", "job", "pod", "service"} {
				delete(one.Labels, name)
			}
			if one.Labels["namespace"] != "" {
				one.Labels["namespace"] = "team-a" // that of a test has a name which nobody would choose
			}
			out = append(out, dashboard.Series{Labels: one.Labels, Points: []dashboard.Point{{Value: number(one.Value)}}})
		}
		return out
	}
	for _, line := range q.Lines {
		one := dashboard.Series{Labels: line.Labels}
		for i, at := range line.Unix {
			one.Points = append(one.Points, dashboard.Point{At: time.Unix(at, 0), Value: number(line.Values[i])})
		}
		out = append(out, one)
	}
	return out
}

// panelQueries returns the queries of a dashboard by the panels that they are for.
func panelQueries(d dashboard.Dashboard) map[string]string {
	out := map[string]string{}
	for _, panel := range d.Panels {
		for i, target := range panel.Targets {
			out[strings.TrimSpace(fmt.Sprint("panel ", panel.Title, " ", string(rune('A'+i))))] = target.Query(5 * time.Minute)
		}
	}
	return out
}
