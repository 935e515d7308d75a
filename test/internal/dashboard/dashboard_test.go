package dashboard_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/internal/dashboard"
)

var update = flag.Bool("update", false, "write the golden picture")

// small has a panel of each type, one that is empty, and one whose title has to be escaped.
const small = `{"title": "Small", "panels": [
	{"title": "How many", "type": "stat", "gridPos": {"x": 0, "y": 0, "w": 6, "h": 4}, "fieldConfig": {"defaults": {"unit": "percentunit"}}, "targets": [{"expr": "a", "instant": true}]},
	{"title": "Nothing <yet>", "type": "stat", "gridPos": {"x": 6, "y": 0, "w": 6, "h": 4}, "targets": [{"expr": "nothing > 0", "instant": true}]},
	{"title": "Over time", "type": "timeseries", "gridPos": {"x": 0, "y": 4, "w": 12, "h": 8}, "fieldConfig": {"defaults": {"unit": "s"}},
	 "targets": [{"expr": "rate(b{c=~\"$controller\"}[$__rate_interval])", "legendFormat": "{{kind}}"}, {"expr": "d", "legendFormat": "the sum"}]},
	{"title": "What waits", "type": "table", "gridPos": {"x": 12, "y": 0, "w": 12, "h": 8}, "fieldConfig": {"defaults": {"unit": "s"}}, "targets": [{"expr": "e", "instant": true}]}
]}`

func read(t *testing.T) dashboard.Dashboard {
	t.Helper()
	file := filepath.Join(t.TempDir(), "small.json")
	if err := os.WriteFile(file, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := dashboard.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestADashboardIsDrawnFromItsResults(t *testing.T) {
	t.Parallel()
	from := time.Unix(1_000_000, 0)
	points := func(values ...float64) []dashboard.Point {
		var out []dashboard.Point
		for i, v := range values {
			out = append(out, dashboard.Point{At: from.Add(time.Duration(i) * 30 * time.Second), Value: v})
		}
		return out
	}
	d := read(t)
	results := map[string][]dashboard.Series{
		"a": {{Points: points(0.75)}},
		d.Panels[2].Targets[0].Expr: {
			{Labels: map[string]string{"kind": "slow"}, Points: points(0.1, 0.25, math.NaN(), 0.4)},
			{Labels: map[string]string{"kind": "fast & furious"}, Points: points(0.01, 0.02, 0.02, 0.02)},
		},
		"d": {{Points: points(0.2, 0.3, 0.3, 0.5)}},
		"e": {
			{Labels: map[string]string{"name": "shop", "component": "web"}, Points: points(12)},
			{Labels: map[string]string{"name": "blog", "component": "database"}, Points: points(4000)},
		},
	}
	got := dashboard.Draw(d, results, from, from.Add(90*time.Second))
	file := filepath.Join("testdata", "small.svg")
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the picture is another one; look at it, and run this test with -update (-want +got):\n%s", diff)
	}
	shown, err := dashboard.Panels(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.Shown(), shown); diff != "" {
		t.Errorf("what the picture says that it shows (-want +got):\n%s", diff)
	}
}

func TestAQueryIsOfAllControllers(t *testing.T) {
	t.Parallel()
	if got, want := read(t).Panels[2].Targets[0].Query(time.Minute), `rate(b{c=~".*"}[60s])`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestValuesAreWrittenInTheirUnit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, unit, want string
		value              float64
	}{
		"Count":      {"there are no halves", "short", "12", 12},
		"Large":      {"each digit counts", "short", "12346", 12345.6},
		"Small":      {"three digits say enough", "short", "0.0123", 0.012345},
		"Share":      {"it is of one", "percentunit", "12.3 %", 0.12345},
		"Rate":       {"it is for each second", "reqps", "2.5/s", 2.5},
		"Moment":     {"less than a second", "s", "12 ms", 0.012},
		"Seconds":    {"less than a minute", "s", "1.5 s", 1.5},
		"Minutes":    {"less than an hour", "s", "2 min 5 s", 125},
		"Hours":      {"a person reads minutes", "s", "2 h 3 min", 7380},
		"NoDuration": {"nothing is no moment", "s", "0 s", 0},
		"NoNumber":   {"a share of none", "percentunit", "–", math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dashboard.Dashboard{Panels: []dashboard.Panel{{Type: "stat", GridPos: dashboard.Place{W: 24, H: 4}, Targets: []dashboard.Target{{Expr: "x"}}}}}
			d.Panels[0].FieldConfig.Defaults.Unit = tc.unit
			picture := string(dashboard.Draw(d, map[string][]dashboard.Series{"x": {{Points: []dashboard.Point{{Value: tc.value}}}}}, time.Time{}, time.Time{}))
			if !strings.Contains(picture, ">"+tc.want+"</text>") {
				t.Errorf("%s: it is not %s:\n%s", tc.reason, tc.want, picture)
			}
		})
	}
}
