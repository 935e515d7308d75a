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
	return transitionTime(previousComponents(before, generation), c, now)
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
