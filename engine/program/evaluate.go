package program

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// The fields of a package that an evaluation reads.
var (
	crPath           = cue.MakePath(cue.Str("cr"))
	componentsPath   = cue.MakePath(cue.Str("components"))
	statusPath       = cue.MakePath(cue.Str("status"))
	requeueAfterPath = cue.MakePath(cue.Str("requeueAfter"))
	inputsPath       = cue.MakePath(cue.Str("inputs"))
	hooksPath        = cue.MakePath(cue.Str("hooks"))
	configPath       = cue.MakePath(cue.Str("config"))
)

// Evaluate returns what the package says to a session. It is pure and safe for
// concurrent use.
//
// It errors when the evaluator itself fails (a panic in CUE), with a LimitError when the
// session, or what is rendered for it, is beyond the package's limits, and with Faults when
// it cannot even be said which components there are; the Rollout then has the inputs,
// which may be what that depends on, and nothing else. Whatever else is wrong with
// the custom resource, a component or the status is in the Rollout, so that one
// part's fault does not hide the others. What it says shows nothing that a Secret holds.
func (p *Program) Evaluate(s Session) (r Rollout, err error) {
	defer p.recovered(&r, &err)
	s = p.digested(s)
	seen := p.evaluate(s)
	if limit, over := errors.AsType[*LimitError](seen.err); over {
		return Rollout{}, p.discreet(limit, s)
	}
	if !seen.speaks() {
		return seen.rollout, seen.err
	}
	blind, has := p.blind(s, seen.rollout)
	literals := slices.Concat(p.literals, secretsIn(seen.rollout))
	if !has && len(literals) == 0 {
		return seen.rollout, seen.err
	}
	w := witness{seen, literals}
	if has {
		w.evaluation = p.evaluate(blind)
	}
	return w.vouch(seen.rollout), w.vouchError(seen.err)
}

// evaluate evaluates a session, whatever it says.
func (p *Program) evaluate(s Session) (out evaluation) {
	defer p.recovered(&out.rollout, &out.err)
	filling := p.filling(s)
	if out.err = p.overLimit(filling); out.err != nil {
		return out
	}
	out.root = p.fill(filling)
	e := &evaluator{Program: p, root: out.root, asked: map[string]users{}, rendered: tally{limits: p.limits}}
	out.rollout, out.err = e.read(s)
	return out
}

// An evaluator evaluates a package with one session filled in, or with none, once.
type evaluator struct {
	*Program
	// root is the package with the session in it.
	root cue.Value
	// asked are the components that use an edge which follows from a reference, as far as that
	// was asked. It is nil without a session: then an edge may be used by all.
	asked map[string]users
	// rendered counts what is rendered. Without a session it has no limits.
	rendered tally
}

// withoutSession returns an evaluator of the package without a custom resource.
func (p *Program) withoutSession() *evaluator { return &evaluator{Program: p, root: p.fill(nil)} }

// read returns what is in an evaluated package.
func (e *evaluator) read(s Session) (r Rollout, err error) {
	// The resource comes first: an invalid spec would otherwise show as nonsense
	// errors all over the components.
	if e.root.LookupPath(crPath).Validate(cue.Concrete(true)) != nil {
		return Rollout{Invalid: e.invalid(e.filling(s))}, nil //nolint:nilerr // what is wrong with the resource is a result
	}
	// So would a configuration that contradicts the package.
	if faults := e.configFaults(e.root.LookupPath(configPath), s.Config); len(faults) > 0 {
		return Rollout{Misconfigured: faults}, nil
	}
	components, faults := e.components()
	if err := e.limitError(); err != nil {
		return Rollout{}, err
	}
	if len(faults) > 0 {
		inputs, _ := e.inputs()
		return Rollout{Inputs: inputs}, &undecidedError{e.name, faults}
	}
	r.Components = components
	r.Hooks = e.hooks()
	if err := e.limitError(); err != nil {
		return Rollout{}, err
	}
	r.Inputs, r.StatusFaults = e.inputs()
	own, faults := statusOf(e.root.LookupPath(statusPath))
	r.Status, r.Unstored = storable(own)
	r.StatusFaults = append(r.StatusFaults, faults...)
	r.RequeueAfter, faults = requeueAfter(e.root.LookupPath(requeueAfterPath))
	r.StatusFaults = append(r.StatusFaults, faults...)
	r.nameAbsent(s)
	return r, nil
}

// undecidedError says that it cannot be said which components there are.
type undecidedError struct {
	pkg    string
	faults fault.Faults
}

// Error names the package and the faults.
func (e *undecidedError) Error() string {
	return fmt.Sprintf("package %s: which components there are cannot be decided: %v", e.pkg, e.faults)
}

// Unwrap returns the faults.
func (e *undecidedError) Unwrap() error { return e.faults }

// filling returns everything of a session that is filled into the package.
func (p *Program) filling(s Session) map[string]any {
	out := map[string]any{"cr": p.crValue(s.CR), "live": p.liveUsed.live(s.Live)}
	if inputs := p.inputValues(s.Inputs); len(inputs) > 0 {
		out["inputs"] = inputs
	}
	if len(s.Config) > 0 {
		config := map[string]any{}
		for _, l := range s.Config {
			config = overlaid(config, l.Values)
		}
		out["config"] = integral(config)
	}
	return out
}

// fill returns the package with data in it: a tree of its own, that shares nothing
// mutable with another.
//
// Everything is evaluated in such a tree, always filled at the root. What is filled
// further down, or evaluated in the package itself, resolves its references in the
// shared tree, and CUE v0.17.1 writes to that: the race detector sees it.
func (p *Program) fill(data map[string]any) cue.Value {
	return p.base.FillPath(cue.Path{}, data)
}

// A PanicError is a panic of the evaluator.
type PanicError struct {
	Package string
	Cause   any
	// Stack is for a log: it is different each time.
	Stack []byte
}

// Error says what the evaluator panicked with.
func (e *PanicError) Error() string {
	return fmt.Sprintf("package %s: the evaluator panicked: %v", e.Package, e.Cause)
}

// recovered turns a panic of the evaluator into an error. It does not help
// against a stack overflow or a hang: see the design's rule on isolation.
func (p *Program) recovered(r *Rollout, err *error) {
	if cause := recover(); cause != nil {
		*r = Rollout{}
		*err = &PanicError{Package: p.name, Cause: cause, Stack: debug.Stack()}
	}
}

// fields are the regular fields of a struct, in the author's order. A value that
// is none has none; one that is in error has those that could be evaluated.
func fields(v cue.Value) iter.Seq2[string, cue.Value] {
	return func(yield func(string, cue.Value) bool) {
		if !v.Exists() {
			return
		}
		// Only when hidden fields are asked for does CUE list the fields of a
		// struct that is in error itself.
		it, err := v.Fields(cue.Hidden(true))
		for err == nil && it.Next() {
			if it.Selector().LabelType() == cue.StringLabel && !yield(it.Selector().Unquoted(), it.Value()) {
				return
			}
		}
	}
}

// components evaluates every component, in the author's order. It returns faults
// when there may be components that it cannot name.
func (e *evaluator) components() ([]Component, fault.Faults) {
	v := e.root.LookupPath(componentsPath)
	var out []Component
	for name, component := range fields(v) {
		if e.rendered.over() {
			return nil, nil
		}
		out = append(out, e.component(name, component))
	}
	out, faults := e.hold(out, v)
	if len(faults) > 0 {
		return nil, faults
	}
	slices.SortStableFunc(out, func(a, b Component) int {
		return e.index.Rank(a.Name) - e.index.Rank(b.Name)
	})
	return out, nil
}

// statusOf evaluates the author's status field by field. An incomplete field is
// left out: the engine keeps the rest.
func statusOf(v cue.Value) (map[string]any, fault.Faults) {
	if !v.Exists() {
		return nil, nil
	}
	out := map[string]any{}
	faults := ownFaults(v)
	if cue.IsIncomplete(v.Err()) {
		faults = nil
	}
	for name, field := range fields(v) {
		value, err := data(field)
		if err == nil {
			out[name] = value
			continue
		}
		own, _ := ofComponent("", valueFaults(field, err))
		faults = append(faults, own...)
	}
	return out, faults
}

// requeueAfter evaluates when to come again; it is 0 for never.
func requeueAfter(v cue.Value) (time.Duration, fault.Faults) {
	if !v.Exists() {
		return 0, nil
	}
	s, err := v.String()
	if err != nil {
		own, _ := ofComponent("", fault.Of(v.Validate(), v)) // none when it is not decidable yet
		return 0, own
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fault.Faults{{Position: fault.At(v.Pos()), Path: "requeueAfter", Message: err.Error()}}
	}
	return d, nil
}
