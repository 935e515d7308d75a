package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"operetta.dev/engine/object"
)

// A componentStatus is a component as the status has it. It is read and written by hand, because each
// reconcile does that, and reflection allocates for each field of each component.
type componentStatus struct {
	Name       string
	State      State
	Reason     Reason
	Message    string
	TimedOutIn State
	Since      string
	Blocks     string
	DependsOn  []string
}

// entry returns the component as a JSON value. Fields that may be missing are left out if they are empty.
func (s componentStatus) entry() map[string]any {
	out := map[string]any{"name": s.Name, "state": string(s.State), "reason": string(s.Reason)}
	optional := func(field, text string) {
		if text != "" {
			out[field] = text
		}
	}
	optional("message", s.Message)
	optional("timedOutIn", string(s.TimedOutIn))
	optional("since", s.Since)
	optional("blocks", s.Blocks)
	if len(s.DependsOn) > 0 {
		out["dependsOn"] = object.Texts(s.DependsOn)
	}
	return out
}

// readEntry returns the component of a JSON value, and reports whether that can be read.
func readEntry(value any) (componentStatus, bool) {
	var s componentStatus
	m, ok := value.(map[string]any)
	ok = ok && readText(m, "name", &s.Name) && readText(m, "state", &s.State) && readText(m, "reason", &s.Reason) &&
		readText(m, "message", &s.Message) && readText(m, "timedOutIn", &s.TimedOutIn) &&
		readText(m, "since", &s.Since) && readText(m, "blocks", &s.Blocks)
	return s, ok
}

// readDependsOn returns the dependencies in the JSON value of a component, or none if that is no list of texts. No reconcile needs
// them: a status says them to people.
func readDependsOn(value any) []string {
	m, _ := value.(map[string]any)
	all, _ := m["dependsOn"].([]any)
	var out []string
	for _, to := range all {
		name, ok := to.(string)
		if !ok {
			return nil
		}
		out = append(out, name)
	}
	return out
}

// maxDependencies is how long the names of all dependencies are together, in bytes: of those beyond, the status says nothing.
// There may be as many as the square of the components.
const maxDependencies = 32 << 10

// sizeOf returns how long some names are together.
func sizeOf(names []string) int {
	out := 0
	for _, name := range names {
		out += len(name)
	}
	return out
}

// readText reads a text, which may be missing or null. It reports whether it is one.
func readText[T ~string](m map[string]any, field string, to *T) bool {
	text, ok := m[field].(string)
	*to = T(text)
	return ok || m[field] == nil
}

// components returns what the status says of each component.
func components(in Input, all []Component) []any {
	blocks, limit := blockingOf(all), messageLimit(len(all))
	before := previousComponents(in.Before, in.Generation)
	var out []any
	left := maxDependencies
	for i, c := range all {
		s := componentStatus{Name: c.Name, State: c.State, Reason: c.Reason, Message: Shorten(c.Message, limit), TimedOutIn: c.TimedOutIn}
		if !c.Done() {
			s.Since = transitionTime(before, c, in.Now).UTC().Format(time.RFC3339)
		}
		s.Blocks = Shorten(names(blocks.by(i)), limit)
		if left -= sizeOf(c.DependsOn); left >= 0 {
			s.DependsOn = c.DependsOn
		}
		out = append(out, s.entry())
	}
	return out
}

// blocking says which components wait for which others, directly or transitively.
type blocking struct {
	all []Component
	// waiting has, by position of a component, the positions of those that wait for it directly.
	waiting [][]int
}

func blockingOf(all []Component) blocking {
	place := make(map[string]int, len(all))
	for i, c := range all {
		place[c.Name] = i
	}
	out := blocking{all, make([][]int, len(all))}
	for i, c := range all {
		for _, upstream := range c.WaitsFor {
			if j, ok := place[upstream]; ok && j != i {
				out.waiting[j] = append(out.waiting[j], i)
			}
		}
	}
	return out
}

// by returns the components that wait for the one at a position, in the author's order. No component
// waits for one that is done.
func (b blocking) by(place int) []string {
	if len(b.waiting[place]) == 0 || b.all[place].Done() {
		return nil
	}
	behind := make([]bool, len(b.all))
	for next := []int{place}; len(next) > 0; next = next[1:] {
		for _, i := range b.waiting[next[0]] {
			if !behind[i] {
				behind[i] = true
				next = append(next, i)
			}
		}
	}
	var out []string
	for i, waits := range behind {
		if waits && i != place {
			out = append(out, b.all[i].Name)
		}
	}
	return out
}

// names lists components, as in "a, b and c". Of many it lists the first few and counts the rest.
func names(all []string) string {
	var first []string
	var last string
	switch more := len(all) - maxListed; {
	case more > 0:
		first, last = all[:maxListed], fmt.Sprintf("%d more", more)
	case len(all) > 1:
		first, last = all[:len(all)-1], all[len(all)-1]
	default:
		return strings.Join(all, "")
	}
	return strings.Join(first, ", ") + " and " + last
}

// Since returns when a component came into its state: the time in the status before, if that has the
// same state for the same generation of the spec, or else now. The reason may have changed: a
// component that waits for the next thing keeps its time.
func Since(before map[string]any, c Component, generation int64, now time.Time) time.Time {
	var was []componentStatus
	for _, entry := range previousEntries(before, generation) {
		if s, ok := readEntry(entry); ok && s.Name == c.Name {
			was = append(was, s)
			break
		}
	}
	return transitionTime(was, c, now)
}

// transitionTime returns when a component came into its state, given the components before.
func transitionTime(before []componentStatus, c Component, now time.Time) time.Time {
	i := slices.IndexFunc(before, func(was componentStatus) bool { return was.Name == c.Name })
	if i >= 0 && before[i].component().awaits() == c.awaits() {
		if since, err := time.Parse(time.RFC3339, before[i].Since); err == nil {
			return since
		}
	}
	return now.Truncate(time.Second)
}

// component returns the component that the entry describes.
func (s componentStatus) component() Component {
	return Component{Name: s.Name, State: s.State, Reason: s.Reason, Message: s.Message, TimedOutIn: s.TimedOutIn}
}

// previousComponents returns the components of a status if it has the same generation of the spec. An
// entry that cannot be read counts as missing, as in conditionsOf.
func previousComponents(before map[string]any, generation int64) []componentStatus {
	var out []componentStatus
	for _, entry := range previousEntries(before, generation) {
		if s, ok := readEntry(entry); ok {
			out = append(out, s)
		}
	}
	return out
}

// previousEntries returns the entries of the components of a status if it has the same generation of the spec.
func previousEntries(before map[string]any, generation int64) []any {
	if observed, _ := before["observedGeneration"].(int64); observed != generation {
		return nil
	}
	return list(before, "components")
}
