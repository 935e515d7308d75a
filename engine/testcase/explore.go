package testcase

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
)

// DefaultSchedules is how many schedules of a test are tried unless somebody asks for more.
const DefaultSchedules = 200

// maxDifferences bounds how many differences of a schedule are reported.
const maxDifferences = 10

// ExploreOptions say how much is tried.
type ExploreOptions struct {
	// Bound is how many schedules of each test are tried at most.
	Bound int
	// Schedule is the name of the only one to try, or "" for all.
	Schedule string
	// Progress is called with how many tests are done, if it is not nil.
	Progress func(done, all int)
	// Found is called with each exploration as soon as it is done, if it is not nil.
	Found func(Exploration)
	// Enough says that the time is up; it may be nil.
	Enough func() bool
}

// An Exploration is how a test ends under many schedules. It can cross a process boundary.
type Exploration struct {
	Name     string         `json:"name"`
	Position fault.Position `json:"position"`
	// All are the schedules that there are, Tried those that were tried, and Impossible those of them in which a step
	// could not begin: it changes something that was not there yet.
	All        int `json:"all"`
	Tried      int `json:"tried"`
	Impossible int `json:"impossible,omitempty"`
	// Schedule is the first one that ends otherwise, or "". If all were tried, none is shorter.
	Schedule string `json:"schedule,omitempty"`
	// Differences say how it ends otherwise, with secrets masked.
	Differences []string `json:"differences,omitempty"`
	// Trace is what happens in the schedule, reconcile by reconcile.
	Trace []string `json:"trace,omitempty"`
	// Error says why the test could not be explored, or is "".
	Error string `json:"error,omitempty"`
}

// Explore takes the steps of each test under many schedules: the operator dies after a write, a response is lost, a
// write is refused, the cache is behind, the next step begins too early, controllers are slow or quick. Each has to
// end in the same state as without that. A test without steps has one, in which the operator rolls out. Explore
// errors when the context ends.
func Explore(ctx context.Context, p *program.Program, tests []Test, o ExploreOptions) ([]Exploration, error) {
	memo := dryrun.NewCachingProgram(p)
	var out []Exploration
	for i, t := range tests {
		e := &explorer{test: t, program: p, evaluator: memo, options: o}
		found, err := e.explore(ctx)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			found.Error = err.Error()
		}
		out = append(out, found)
		if o.Found != nil {
			o.Found(found)
		}
		if o.Progress != nil {
			o.Progress(i+1, len(tests))
		}
	}
	return out, nil
}

// An explorer explores one test.
type explorer struct {
	test      Test
	program   *program.Program
	evaluator *dryrun.CachingProgram
	options   ExploreOptions
	steps     []step
	input     render.Input
	// writes are how many writes each step has.
	writes []int
}

// errImpossible is that a step could not begin, because it changes something that was not there yet.
var errImpossible = errors.New("a step cannot begin so early")

// explore tries the schedules of the test until one ends otherwise.
func (e *explorer) explore(ctx context.Context) (Exploration, error) {
	out := Exploration{Name: e.test.Name, Position: e.test.Position}
	err := e.test.faults.OrNil()
	if err != nil {
		return out, err
	}
	if e.input, err = e.test.given(e.program); err != nil {
		return out, err
	}
	if e.steps, err = e.test.steps(); err != nil {
		return out, err
	}
	if len(e.steps) == 0 {
		e.steps = []step{{}}
	}
	e.writes = make([]int, len(e.steps))
	want, _, err := e.play(ctx, schedule{}, e.count)
	if err != nil {
		return out, fmt.Errorf("without any fault: %w", err)
	}
	one, two := schedules(e.writes)
	out.All = len(one) + len(two)
	for _, s := range e.selected(one, two) {
		if out.Tried > 0 && e.options.Enough != nil && e.options.Enough() {
			return out, nil
		}
		out.Tried++
		got, trace, err := e.play(ctx, s, nil)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case errors.Is(err, errImpossible):
			out.Impossible++
			continue
		case err != nil:
			out.Differences = []string{err.Error()}
		default:
			out.Differences = want.differences(got, s)
		}
		if len(out.Differences) > 0 || e.options.Schedule != "" {
			out.Schedule, out.Trace = s.String(), trace
			return out, nil
		}
	}
	if e.options.Schedule != "" && out.Tried == 0 {
		return out, fmt.Errorf("it has no schedule %q", e.options.Schedule)
	}
	return out, nil
}

// selected returns the schedules to try.
func (e *explorer) selected(one, two []schedule) []schedule {
	if e.options.Schedule == "" {
		return chosen(one, two, e.options.Bound)
	}
	for _, s := range slices.Concat(one, two) {
		if s.String() == e.options.Schedule {
			return []schedule{s}
		}
	}
	return nil
}

// count notes how many writes a step has.
func (e *explorer) count(step, writes int) { e.writes[step] = writes }
