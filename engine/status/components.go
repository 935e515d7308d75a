package status

import (
	"fmt"
	"strings"
	"time"
)

// components returns what the status says of each component.
func components(in Input, all []Component) []any {
	blocks, limit := blockingOf(all), messageLimit(len(all))
	before := map[string]previousComponent{}
	for _, was := range previousComponents(in.Before, in.Generation) {
		before[was.Name] = was
	}
	var out []any
	for i, c := range all {
		m := map[string]any{"name": c.Name, "state": string(c.State), "reason": string(c.Reason)}
		if c.Message != "" {
			m["message"] = Shorten(c.Message, limit)
		}
		if c.TimedOutIn != "" {
			m["timedOutIn"] = string(c.TimedOutIn)
		}
		if !c.Done() {
			m["since"] = before[c.Name].transitionTime(c, in.Now).UTC().Format(time.RFC3339)
		}
		if waiting := blocks.by(i); len(waiting) > 0 {
			m["blocks"] = Shorten(names(waiting), limit)
		}
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
	for _, was := range previousComponents(before, generation) {
		if was.Name == c.Name {
			return was.transitionTime(c, now)
		}
	}
	return now.Truncate(time.Second)
}

// previousComponent is what a status says of a component.
type previousComponent struct {
	Component
	since time.Time
}

// transitionTime returns when a component came into its state, if that was said of it before.
func (s previousComponent) transitionTime(c Component, now time.Time) time.Time {
	if s.since.IsZero() || s.awaits() != c.awaits() {
		return now.Truncate(time.Second)
	}
	return s.since
}

// previousComponents returns what a status says of components, if it is about the same generation
// of the spec.
func previousComponents(before map[string]any, generation int64) []previousComponent {
	if observed, _ := before["observedGeneration"].(int64); observed != generation {
		return nil
	}
	var out []previousComponent
	for _, c := range list(before, "components") {
		m, _ := c.(map[string]any)
		text := func(field string) string { s, _ := m[field].(string); return s }
		began, _ := time.Parse(time.RFC3339, text("since"))
		out = append(out, previousComponent{since: began, Component: Component{
			Name: text("name"), State: State(text("state")), Reason: Reason(text("reason")), Message: text("message"),
			TimedOutIn: State(text("timedOutIn")),
		}})
	}
	return out
}
