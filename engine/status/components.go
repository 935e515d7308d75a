package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// A componentStatus is a component as the status has it.
type componentStatus struct {
	Name       string `json:"name"`
	State      State  `json:"state"`
	Reason     Reason `json:"reason"`
	Message    string `json:"message,omitempty"`
	TimedOutIn State  `json:"timedOutIn,omitempty"`
	Since      string `json:"since,omitempty"`
	Blocks     string `json:"blocks,omitempty"`
}

// components returns what the status says of each component.
func components(in Input, all []Component) []any {
	blocks, limit := blockingOf(all), messageLimit(len(all))
	before := previousComponents(in.Before, in.Generation)
	var out []any
	for i, c := range all {
		s := componentStatus{Name: c.Name, State: c.State, Reason: c.Reason, Message: Shorten(c.Message, limit), TimedOutIn: c.TimedOutIn}
		if !c.Done() {
			s.Since = transitionTime(before, c, in.Now).UTC().Format(time.RFC3339)
		}
		s.Blocks = Shorten(names(blocks.by(i)), limit)
		m, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&s) // it has plain fields
		out = append(out, m)
	}
	return out
}

// blocking says which components wait for which others, directly or behind one
// another. There may be many, and they are all asked for.
type blocking struct {
	all []Component
	// waiting are the components that wait for the one at that place.
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

// by returns the components that wait for the one at a place, in the author's order.
// For one that is settled nobody waits.
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

// names enumerates components: "a, b and c", and of many the first few.
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

// Since returns when a component came into its state: as the status before says, if
// it has the same one of it for the same generation of the spec, or now. What has
// waited for one thing has its time for the next one all the same.
func Since(before map[string]any, c Component, generation int64, now time.Time) time.Time {
	return transitionTime(previousComponents(before, generation), c, now)
}

// transitionTime returns when a component came into its state, given what was said before.
func transitionTime(before []componentStatus, c Component, now time.Time) time.Time {
	i := slices.IndexFunc(before, func(was componentStatus) bool { return was.Name == c.Name })
	if i >= 0 && before[i].component().awaits() == c.awaits() {
		if since, err := time.Parse(time.RFC3339, before[i].Since); err == nil {
			return since
		}
	}
	return now.Truncate(time.Second)
}

// component returns the component that a status was about.
func (s componentStatus) component() Component {
	return Component{Name: s.Name, State: s.State, Reason: s.Reason, Message: s.Message, TimedOutIn: s.TimedOutIn}
}

// previousComponents returns what a status says of components, if it is about the same generation
// of the spec. One that cannot be read counts as missing, as in conditionsOf.
func previousComponents(before map[string]any, generation int64) []componentStatus {
	if observed, _ := before["observedGeneration"].(int64); observed != generation {
		return nil
	}
	var out []componentStatus
	for _, c := range list(before, "components") {
		var s componentStatus
		m, ok := c.(map[string]any)
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &s) == nil {
			out = append(out, s)
		}
	}
	return out
}
