package status

import (
	"slices"
	"time"
)

// A Summary is what a status says in words that come from fixed lists, and in times. Parts of a status may
// come from whoever wrote it last, so what is on no list is left out.
type Summary struct {
	// Phase is "" if the status has none.
	Phase Phase
	// Digest is that of the package that has written the status.
	Digest string
	// Paused says that a person has paused the resource.
	Paused     bool
	Components []ComponentSummary
}

// A ComponentSummary is what a status says of one component.
type ComponentSummary struct {
	Name   string
	State  State
	Reason Reason
	// Since is when the component came into its state; the zero value if it is done.
	Since time.Time
}

// A ComponentText is a ComponentSummary with its texts, which whoever wrote the status last may have written.
type ComponentText struct {
	ComponentSummary
	Message, Blocks string
	// DependsOn are its dependencies if they are more than the inventory says.
	DependsOn []string
}

// Phases and States are all there are.
var (
	Phases = []Phase{PhaseCreated, PhaseReconciling, PhaseWaiting, PhaseReady, PhaseScaling, PhaseFailed, PhaseDeleting}
	States = []State{Verified, Applied, Waiting, Retrying, Failed, Excluded, Held, Deleting}
)

// Summarize returns the summary of a status.
func Summarize(s map[string]any) Summary {
	out := Summary{}
	if p := PhaseOf(s); slices.Contains(Phases, p) {
		out.Phase = p
	}
	if pkg, ok := s["package"].(map[string]any); ok {
		out.Digest, _ = pkg["digest"].(string)
	}
	if c := Condition(s, ConditionPaused); c != nil {
		out.Paused = c.Status == "True"
	}
	for _, c := range ComponentTexts(s) {
		out.Components = append(out.Components, c.ComponentSummary)
	}
	return out
}

// ComponentTexts returns what a status says of its components. An entry of another form is left out, and so
// is one whose state is none.
func ComponentTexts(s map[string]any) []ComponentText {
	var out []ComponentText
	for _, entry := range list(s, "components") {
		c, ok := readEntry(entry)
		if !ok || !slices.Contains(States, c.State) {
			continue
		}
		since, err := time.Parse(time.RFC3339, c.Since)
		if err != nil {
			since = time.Time{}
		}
		summary := ComponentSummary{Name: c.Name, State: c.State, Reason: c.Reason, Since: since}
		out = append(out, ComponentText{summary, c.Message, c.Blocks, readDependsOn(entry)})
	}
	return out
}
