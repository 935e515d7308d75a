package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
	"operetta.dev/engine/vet"
)

// A Package is a package whose sessions are evaluated in the workers of a pool. It is safe for concurrent
// use.
type Package struct {
	pool    *Pool
	program *program.Program
	// number tells it from other packages, and from other versions of it.
	number uint64
	// suspects returns the lines at which an evaluation may become too much, as the end of a message.
	suspects func() string
}

// Package returns a package whose sessions are evaluated in the workers of the pool. A worker loads it at
// once, so that the first evaluation does not wait for that.
func (p *Pool) Package(of *program.Program) *Package {
	p.mu.Lock()
	p.packages++
	out := &Package{pool: p, program: of, number: p.packages, suspects: sync.OnceValue(func() string { return suspectLines(of) })}
	p.mu.Unlock()
	go out.prepare()
	return out
}

// prepare makes a worker load the package. If that fails, the first evaluation says so.
func (p *Package) prepare() {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	w, err := p.pool.acquire(ctx, "", p.number)
	if err != nil {
		return
	}
	_ = w.load(ctx, p)
	p.pool.release("", w)
}

// Evaluate returns what Program.Evaluate returns. It errors with a LimitError as well if the evaluation
// takes more time, memory or stack than a worker has, or if the evaluations of the rollout of the
// context take too much time together; and with an UnavailableError if there is no worker.
func (p *Package) Evaluate(ctx context.Context, s program.Session) (program.Rollout, error) {
	s, err := p.program.Views().Reduced(s)
	if err != nil {
		return program.Rollout{}, err
	}
	out, err := p.evaluate(ctx, request{Package: p.number, Session: s})
	return out.Rollout, err
}

// Confirm returns what Evaluate returns, and whether that is what was expected. Which messages rest on a Secret is not
// asked again for what was expected.
func (p *Package) Confirm(ctx context.Context, s program.Session, expected program.Rollout) (program.Rollout, bool, error) {
	s, err := p.program.Views().Reduced(s)
	if err != nil {
		return program.Rollout{}, false, err
	}
	digest, err := digestOf(expected)
	if err != nil {
		return program.Rollout{}, false, &program.UnavailableError{Err: err}
	}
	out, err := p.evaluate(ctx, request{Package: p.number, Session: s, Confirm: digest})
	if err == nil && out.Confirmed {
		return expected, true, nil
	}
	return out.Rollout, false, err
}

// evaluate asks for the rollout of a reduced session.
func (p *Package) evaluate(ctx context.Context, r request) (response, error) {
	out, err := p.ask(ctx, r)
	if err != nil {
		return response{}, err
	}
	if spent, limit := spend(ctx, out.Used), rolloutShare*p.pool.options.Limits.Time; spent > limit {
		text := fmt.Sprintf("its evaluations took more than the limit of %s of processor time for all of a rollout", limit)
		return response{}, &program.LimitError{Evaluated: true, TooSlow: true, Text: text}
	}
	return out, out.Failure.err()
}

// Compile returns what Evaluate returns, and a template for sessions of the same shape, if there is one.
func (p *Package) Compile(ctx context.Context, s program.Session, pins template.Pins) (compile.Result, error) {
	failed := compile.Result{Pins: pins}
	s, err := p.program.Views().Reduced(s)
	if err != nil {
		return failed, err
	}
	out, err := p.ask(ctx, request{Package: p.number, Session: s, Compile: true, Pins: pins})
	if _, over := errors.AsType[*program.LimitError](err); over {
		// What is too much may be the template, which takes several evaluations.
		again, err := p.evaluate(ctx, request{Package: p.number, Session: s})
		if failed.Rollout, failed.Err = again.Rollout, err; err == nil {
			failed.Untranslated = []compile.Reason{{Message: "it takes too long to make a template"}}
			failed.Inconclusive = true
		}
		return failed, failed.Err
	}
	if err != nil {
		return failed, err
	}
	timeOf(ctx).templates.Add(int64(out.Used))
	result := compile.Result{Rollout: out.Rollout, Err: out.Failure.err(), Pins: out.Pins, Untranslated: out.Untranslated, Inconclusive: out.Inconclusive}
	if out.Template == nil {
		return result, nil
	}
	result.Template = &compile.Template{}
	if err := json.Unmarshal(out.Template, result.Template); err != nil {
		return failed, fmt.Errorf("package %s: reading a template: %w", p.program.Name(), err)
	}
	return result, nil
}

// Locate returns what Program.Locate returns, or no position if there is no answer.
func (p *Package) Locate(ctx context.Context, s program.Session, component, object, path string) fault.Position {
	s, err := p.program.Views().Reduced(s)
	if err != nil {
		return fault.Position{}
	}
	out, err := p.ask(ctx, request{Package: p.number, Session: s, Locate: &field{component, object, path}})
	if err != nil {
		return fault.Position{} // the rendering is the same, so its evaluation says what is wrong
	}
	spend(ctx, out.Used)
	return out.Position
}

// Review returns what Program.Review returns. It errors with a LimitError as Evaluate does, and also if it
// does not end a moment before the context does. It errors with an UnavailableError if there was no worker in
// time for it.
func (p *Package) Review(ctx context.Context, s program.Session) (program.Review, error) {
	s, err := p.program.Views().Reduced(s)
	if err != nil {
		return program.Review{}, err
	}
	out, err := p.ask(ctx, request{Package: p.number, Session: s, Review: true})
	if err != nil {
		return program.Review{}, err
	}
	return out.Review, out.Failure.err()
}

// Convert returns what Conversions.ConvertResource returns. It errors as Review does.
func (p *Package) Convert(ctx context.Context, c program.Conversion) (map[string]any, error) {
	if err := p.program.Conversions().CheckSpec(c.Spec); err != nil {
		return nil, err
	}
	out, err := p.ask(ctx, request{Package: p.number, Convert: &c})
	if err != nil {
		return nil, err
	}
	return out.Converted, out.Failure.err()
}

// ask returns the answer of a worker. A worker may be killed for no fault of the session, if the machine
// has no memory left; so one that dies for an unknown reason dies twice before the session counts
// as its cause. Nor does what others have left in a worker's memory count as its own.
func (p *Package) ask(ctx context.Context, r request) (response, error) {
	tenant := r.tenant()
	if isPlan(ctx) {
		// A plan takes no turns of the resources that it is about, and makes none of them suspect.
		tenant = "plan of " + tenant
	}
	out, err := p.askOnce(ctx, tenant, r, p.pool.acquire)
	if errors.Is(err, errDied) || errors.Is(err, errSharedMemory) {
		out, err = p.askOnce(ctx, tenant, r, p.pool.acquireNew)
	}
	limit, over := errors.AsType[*program.LimitError](err)
	if errors.Is(err, errDied) {
		text := fmt.Sprintf("its evaluation ended the process that it ran in, which had a limit of %d MiB of memory", p.pool.options.Limits.Memory>>20)
		limit, over = &program.LimitError{Evaluated: true, Text: text}, true
	}
	switch {
	case over:
		timeOf(ctx).killed.Add(int64(p.pool.options.Limits.Time))
		limit.Text += p.suspects()
		return response{}, limit
	case err != nil:
		return response{}, &program.UnavailableError{Err: err}
	}
	return out, nil
}

// note notes what an evaluation of a tenant has cost, before its worker is free: what the tenant asks for next must not take it before others.
func (p *Pool) note(tenant string, r request, used time.Duration, err error) {
	_, over := errors.AsType[*program.LimitError](err)
	switch {
	case !over && !errors.Is(err, errDied):
		if !r.Compile { // a template takes several evaluations, once
			p.noteUsed(tenant, used)
		}
	case r.Compile:
		p.noteSlow(tenant) // the template may be too much, and not the resource; its evaluation comes next
	default:
		p.suspect(tenant)
	}
}

// maxSuspectLines is how many lines a message names.
const maxSuspectLines = 3

// suspectLines returns the lines of a package at which an evaluation may become too much, as the end of
// a message. It goes by the text alone, so that the message is the same each time.
func suspectLines(p *program.Program) string {
	var lines []string
	for _, f := range vet.Growths(p) {
		if line := f.Position.String(); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return ", probably at " + strings.Join(lines[:min(len(lines), maxSuspectLines)], " or ")
}

// errSharedMemory is the error of a worker that has taken too much memory, some of it for others.
var errSharedMemory = errors.New("the worker has taken too much memory, some of it for others")

// askOnce returns the answer of one worker.
func (p *Package) askOnce(ctx context.Context, tenant string, r request, acquire func(context.Context, string, uint64) (*process, error)) (response, error) {
	w, err := acquire(ctx, tenant, p.number)
	if err != nil {
		return response{}, err
	}
	defer func() { p.pool.release(tenant, w) }()
	shared := w.sharesMemory(p.number)
	var out response
	loading := ctx
	if r.awaited() {
		loading = context.WithoutCancel(ctx) // else a package that loads slowly would never be loaded for reviews
	}
	if err = w.load(loading, p); err == nil {
		out, err = w.ask(ctx, r)
	}
	if err != nil && shared && w.cmd.ProcessState.ExitCode() == ExitMemory {
		return response{}, errSharedMemory
	}
	p.pool.note(tenant, r, out.Used, err)
	return out, err
}

// tenant returns who takes turns with others. Whoever may create a request has turns of its own, and makes
// nobody's resources suspect.
func (r request) tenant() string {
	switch {
	case r.Convert != nil && r.Convert.Namespace != "":
		return "conversion of " + r.Convert.Namespace
	case r.Convert != nil:
		return "conversion of /" + r.Convert.Name
	case r.Review:
		return "review of " + r.Session.Tenant()
	}
	return r.Session.Tenant()
}

// planKey is the key by which the context of a plan is known.
type planKey struct{}

// WithPlan returns the context of a plan, whose evaluations are none of the resources themselves. They are those of many
// rollouts, and have no limit together.
func WithPlan(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, timeKey{}, nil), planKey{}, true)
}

// isPlan reports whether a context is that of a plan.
func isPlan(ctx context.Context) bool {
	of, _ := ctx.Value(planKey{}).(bool)
	return of
}

// timeKey is the key of the rolloutTime in the context of a rollout.
type timeKey struct{}

// A rolloutTime is the processor time that a rollout has taken in workers, in nanoseconds.
type rolloutTime struct {
	// evaluations is what has an answer, killed what has none, and templates what has made templates.
	evaluations, killed, templates atomic.Int64
}

// WithRollout returns the context of one rollout, whose evaluations have a limit together.
func WithRollout(ctx context.Context) context.Context {
	return context.WithValue(ctx, timeKey{}, &rolloutTime{})
}

// timeOf returns the time of the rollout of a context.
func timeOf(ctx context.Context) *rolloutTime {
	if t, ok := ctx.Value(timeKey{}).(*rolloutTime); ok {
		return t
	}
	return &rolloutTime{}
}

// ProcessorTimeSpent returns how much processor time the rollout of a context has taken in workers. What was killed
// counts as the limit of one evaluation.
func ProcessorTimeSpent(ctx context.Context) time.Duration {
	t := timeOf(ctx)
	return time.Duration(t.evaluations.Load() + t.killed.Load() + t.templates.Load())
}

// spend adds to what the evaluations of a rollout have taken, and returns it. Neither what was killed nor
// what has made a template is among it: a rollout may go on without a template.
func spend(ctx context.Context, more time.Duration) time.Duration {
	return time.Duration(timeOf(ctx).evaluations.Add(int64(more)))
}
