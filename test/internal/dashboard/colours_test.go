package dashboard_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"operetta.dev/engine/status"
	"operetta.dev/test/internal/dashboard"
)

func TestAPhaseAndAStateHaveTheColourThatOneExpects(t *testing.T) {
	t.Parallel()
	d, err := dashboard.Read(filepath.Join("..", "..", "..", "config", "grafana", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	states := []string{string(status.Verified), string(status.Applied), string(status.Waiting), string(status.Retrying), string(status.Failed), string(status.Excluded), string(status.Held), string(status.Deleting)}
	phases := []string{string(status.PhaseCreated), string(status.PhaseReconciling), string(status.PhaseWaiting), string(status.PhaseReady), string(status.PhaseScaling), string(status.PhaseFailed), string(status.PhaseDeleting)}
	for title, row := range map[string]struct {
		reason string
		names  []string
		wants  map[string]string
	}{
		"Resources by phase":  {"a person reads green as good", phases, map[string]string{"Ready": "#3f9c61", "Failed": "#c4314b"}},
		"Components by state": {"a person reads green as good", states, map[string]string{"Verified": "#3f9c61", "Failed": "#c4314b"}},
	} {
		at := slices.IndexFunc(d.Panels, func(p dashboard.Panel) bool { return p.Title == title })
		if at < 0 {
			t.Fatalf("there is no panel %s", title)
		}
		one := dashboard.Dashboard{Panels: d.Panels[at : at+1]}
		label := strings.Trim(one.Panels[0].Targets[0].LegendFormat, "{}")
		seen := map[string]string{}
		for _, name := range row.names {
			series := map[string][]dashboard.Series{one.Panels[0].Targets[0].Expr: {{Labels: map[string]string{label: name}}}}
			_, after, _ := strings.Cut(string(dashboard.Draw(one, series, time.Time{}, time.Time{})), `height="4" fill="`)
			colour, _, _ := strings.Cut(after, `"`)
			if other, taken := seen[colour]; taken {
				t.Errorf("%s: %s and %s have one colour: %s", title, name, other, row.reason)
			}
			seen[colour] = name
			if want := row.wants[name]; want != "" && want != colour {
				t.Errorf("%s: %s is %s, want %s: %s", title, name, colour, want, row.reason)
			}
		}
	}
}
