package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/status"
)

// outside is where a resource is that is not there: mermaid's [*], and no phase.
const outside = "[*]"

// A transition is from one phase to another.
type transition struct{ from, to string }

// stateArrow is a transition in mermaid.
var stateArrow = regexp.MustCompile(`^(\S+) --> (\S+?)(:|$)`)

// drawnTransitions returns the transitions of a state diagram. An arrow that leads into a state
// with states in it says that these have beginnings of their own, and one that leaves
// it leaves each of them.
func drawnTransitions(text string) []transition {
	var out []transition
	within := map[string][]string{}
	composite := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "state "); ok {
			composite = strings.TrimSuffix(name, " {")
			continue
		}
		if line == "}" {
			composite = ""
			continue
		}
		m := stateArrow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if composite != "" && !slices.Contains(within[composite], m[2]) {
			within[composite] = append(within[composite], m[2])
		}
		if _, into := within[m[2]]; into {
			continue
		}
		parts, leaves := within[m[1]]
		if !leaves {
			parts = []string{m[1]}
		}
		for _, from := range parts {
			out = append(out, transition{from, m[2]})
		}
	}
	return out
}

// possibleTransitions returns every transition that some completion causes.
func possibleTransitions(t *testing.T) []transition {
	t.Helper()
	var out []transition
	for _, before := range append([]string{""}, constants(t, "status", "Phase")...) {
		for c := range completions(t) {
			if before == string(status.PhaseDeleting) && !c.Deleting {
				continue // a deletion is for good
			}
			after := string(status.PhaseOf(status.Build(status.Input{Completion: c, Before: statusOf(before), Generation: 1})))
			one := transition{before, after}
			if before == "" {
				one.from = outside
			}
			if before != after && !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return append(out, transition{string(status.PhaseDeleting), outside})
}

// statusOf returns a status in a phase.
func statusOf(phase string) map[string]any {
	if phase == "" {
		return nil
	}
	out := map[string]any{"phase": phase, "observedGeneration": int64(1)}
	if phase == string(status.PhaseFailed) {
		out["components"] = []any{map[string]any{"name": "a", "state": string(status.Failed)}}
	}
	return out
}

// completions yields what may come of a rollout: every two states of components with
// everything else that there may be.
func completions(t *testing.T) func(func(status.Completion) bool) {
	t.Helper()
	states := append([]string{""}, constants(t, "status", "State")...)
	changes := constants(t, "status", "Change")
	faults := []status.Component{{}, {State: status.Failed, Reason: status.ReasonInvalidSpec}, {State: status.Retrying, Reason: status.ReasonApplyFailed}}
	return func(yield func(status.Completion) bool) {
		for n := range len(states) * len(states) * len(changes) * len(faults) * 8 {
			pick := func(of int) int { i := n % of; n /= of; return i }
			var c status.Completion
			for _, name := range []string{"a", "b"} {
				if s := states[pick(len(states))]; s != "" {
					c.Components = append(c.Components, status.Component{Name: name, State: status.State(s), Reason: status.ReasonNotReady})
				}
			}
			c.Change, c.Fault = status.Change(changes[pick(len(changes))]), faults[pick(len(faults))]
			c.Deleting, c.Planned = pick(2) == 1, pick(2) == 1
			c.Pruning = []string{"", "an object is being deleted"}[pick(2)]
			if !yield(c) {
				return
			}
		}
	}
}

func TestThePictureOfThePhasesIsTheAutomaton(t *testing.T) {
	phases := section(t, read(t, "docs/reasons.md"), "Phases")
	agree(t, "phase", column(rows(phases.Text)), constants(t, "status", "Phase"))
	sorted := func(all []transition) []string {
		var out []string
		for _, one := range all {
			out = append(out, one.from+" -> "+one.to)
		}
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff(sorted(possibleTransitions(t)), sorted(drawnTransitions(phases.Text))); diff != "" {
		t.Errorf("docs/reasons.md draws other transitions than there are (-there are +drawn):\n%s", diff)
	}
}

// schemaPhases is the line of the contract that lists the phases.
var schemaPhases = regexp.MustCompile(`(?m)^#Phase: (.*)$`)

func TestATestMayWantThePhasesThatThereAre(t *testing.T) {
	t.Parallel()
	line := schemaPhases.FindStringSubmatch(read(t, "schemas/operator/operator.cue").Text)
	if line == nil {
		t.Fatal("schemas/operator/operator.cue lists no phases")
	}
	var listed []string
	for word := range strings.SplitSeq(line[1], " | ") {
		listed = append(listed, strings.Trim(word, `"`))
	}
	agree(t, "phase", listed, constants(t, "status", "Phase"))
}

func TestThePhasesHaveTheTransitionsOfTheWebAppOperator(t *testing.T) {
	all := possibleTransitions(t)
	for _, want := range []transition{
		{outside, "Created"}, {"Created", "Reconciling"}, {"Reconciling", "Waiting"}, {"Waiting", "Ready"},
		{"Ready", "Scaling"}, {"Scaling", "Ready"}, {"Ready", "Deleting"}, {"Deleting", outside},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("nothing leads from %s to %s", want.from, want.to)
		}
	}
}
