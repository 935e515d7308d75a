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

// Evaluate returns the rollout of a package for a session. It is pure and safe for
// concurrent use.
//
// It errors with a PanicError if CUE panics, with a LimitError if the session or the rendered
// objects exceed a limit of the package, and with an UndecidedError if the list of components is
// undecided; the Rollout then has only the inputs, which the list may depend on. Everything
// else that is wrong with the custom resource, a component or the status is in the Rollout, so
// that one fault does not hide the others. No message contains the content of a Secret.
func (p *Program) Evaluate(s Session) (r Rollout, err error) {
	r, _, err = p.Confirm(s, func(Rollout) bool { return false })
	return r, err
}

// Confirm returns what Evaluate returns, unless the rollout is as expected: then it returns true and no rollout. What
// is expected must hold no message that rests on a Secret, since the session is not evaluated again with other
// values to see which do. A rollout that is not as expected must not leave this process: its messages may.
func (p *Program) Confirm(s Session, expected func(Rollout) bool) (r Rollout, confirmed bool, err error) {
	defer p.recovered(&r, &err)
	s = p.views.digested(s)
	seen := p.evaluate(s)
	if seen.err == nil && expected(seen.rollout) {
		return Rollout{}, true, nil
	}
	r, err = p.withoutSecrets(s, seen)
	return r, false, err
}

// withoutSecrets returns an evaluation of a session without what its messages show of Secrets.
func (p *Program) withoutSecrets(s Session, seen evaluation) (Rollout, error) {
	if limit, over := errors.AsType[*LimitError](seen.err); over {
		return Rollout{}, p.secrets.withoutFigures(limit, s)
	}
	if !seen.hasMessages() {
		return seen.rollout, seen.err
	}
	blind, has := p.secrets.blind(s, seen.rollout)
	literals := slices.Concat(p.secrets.literals, secretsIn(seen.rollout))
	if !has && len(literals) == 0 {
		return seen.rollout, seen.err
	}
	w := blindEvaluation{seen, literals}
	if has {
		w.evaluation = p.evaluate(blind)
	}
	return w.keepSharedMessages(seen.rollout), w.keepSharedError(seen.err)
}

// evaluate evaluates a session. Its messages may contain the content of Secrets.
func (p *Program) evaluate(s Session) (out evaluation) {
	defer p.recovered(&out.rollout, &out.err)
	filling := p.views.filling(s)
	if out.err = p.limits.check(filling); out.err != nil {
		return out
	}
	out.root = p.compiled.fill(filling)
	e := &evaluator{Program: p, root: out.root, asked: map[string][]string{}, rendered: tally{limits: p.limits}}
	out.rollout, out.err = e.read(s)
	return out
}

// An evaluator evaluates a package with one session filled in, or with none, once.
type evaluator struct {
	*Program
	// root is the package with the session in it.
	root cue.Value
	// asked caches which components use a derived edge. It is nil without a session: then all
	// components may use the edge.
	asked map[string][]string
	// rendered counts the rendered data. Without a session it has no limits.
	rendered tally
}

// withoutSession returns an evaluator of the package without a custom resource.
func (p *Program) withoutSession() *evaluator {
	return &evaluator{Program: p, root: p.compiled.fill(nil)}
}

// read returns the rollout of an evaluated package.
func (e *evaluator) read(s Session) (r Rollout, err error) {
	// The resource is validated first, because an invalid spec causes misleading errors
	// in all components.
	if Lookup(e.root, "cr").Validate(cue.Concrete(true)) != nil {
		return Rollout{Invalid: e.invalid(e.views.filling(s))}, nil //nolint:nilerr // the faults of the resource are a result
	}
	// A configuration that contradicts the package does the same.
	if faults := e.config.faults(Lookup(e.root, "config"), s.Config); len(faults) > 0 {
		return Rollout{Misconfigured: faults}, nil
	}
	r, err = e.rollout()
	r.nameMissingInputs(s)
	return r, err
}

// rollout returns what an evaluated package says, whether its resource is valid or not.
func (e *evaluator) rollout() (r Rollout, err error) {
	components, faults := e.components()
	if err := e.limitError(); err != nil {
		return Rollout{}, err
	}
	if len(faults) > 0 {
		inputs, _ := e.inputs()
		return Rollout{Inputs: inputs}, &UndecidedError{e.name, faults}
	}
	r.Components = components
	r.Hooks = e.hooks()
	if err := e.limitError(); err != nil {
		return Rollout{}, err
	}
	r.Inputs, r.StatusFaults = e.inputs()
	own, faults := statusOf(Lookup(e.root, "status"))
	r.Status, r.Unstored = storable(own)
	r.StatusFaults = append(r.StatusFaults, faults...)
	r.RequeueAfter, faults = requeueAfter(Lookup(e.root, "requeueAfter"))
	r.StatusFaults = append(r.StatusFaults, faults...)
	return r, nil
}

// UndecidedError is the error for a package whose list of components is undecided.
type UndecidedError struct {
	Package string
	Faults  fault.Faults
}

// Error names the package and the faults.
func (e *UndecidedError) Error() string {
	return fmt.Sprintf("package %s: which components there are cannot be decided: %v", e.Package, e.Faults)
}

// Unwrap returns the faults.
func (e *UndecidedError) Unwrap() error { return e.Faults }

// An UnavailableError says that nothing could be evaluated. It tells nothing about the package or the
// session.
type UnavailableError struct{ Err error }

// Error says why.
func (e *UnavailableError) Error() string { return fmt.Sprintf("evaluating: %v", e.Err) }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// A compiled package is what evaluations are made of.
//
// Every evaluation happens in a tree of its own, and data is always filled in at the root. A value
// that is filled in further down, or evaluated in the package itself, resolves its references
// in the shared tree, and CUE v0.17.1 writes to that tree: the race detector reports it.
type compiled struct{ base cue.Value }

// fill returns the package with data in it, as a tree that shares nothing mutable with others.
func (c compiled) fill(data map[string]any) cue.Value { return c.base.FillPath(cue.Path{}, data) }

// A PanicError is a panic of the evaluator.
type PanicError struct {
	Package string
	Cause   any
	// Stack is for a log: it is different each time.
	Stack []byte
}

// Error names the package and the cause of the panic.
func (e *PanicError) Error() string {
	return fmt.Sprintf("package %s: the evaluator panicked: %v", e.Package, e.Cause)
}

// recovered turns a panic of CUE into an error. Nothing in a process helps against a stack overflow or a hang, so what users
// write is evaluated in workers (package worker).
func (p *Program) recovered(r *Rollout, err *error) {
	if cause := recover(); cause != nil {
		*r = Rollout{}
		*err = &PanicError{Package: p.name, Cause: cause, Stack: debug.Stack()}
	}
}

// fields yields the regular fields of a struct, in the author's order. A value of another kind
// has none; a struct with an error has those that could be evaluated.
func fields(v cue.Value) iter.Seq2[string, cue.Value] {
	return func(yield func(string, cue.Value) bool) {
		if !v.Exists() {
			return
		}
		// Only with hidden fields does CUE list the fields of a
		// struct that is in error itself.
		it, err := v.Fields(cue.Hidden(true))
		for err == nil && it.Next() {
			if it.Selector().LabelType() == cue.StringLabel && !yield(it.Selector().Unquoted(), it.Value()) {
				return
			}
		}
	}
}

// components evaluates every component, in the author's order. It returns faults if there may
// be components whose names are undecided.
func (e *evaluator) components() ([]Component, fault.Faults) {
	v := Lookup(e.root, "components")
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
// left out, and the others are reported.
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

// requeueAfter evaluates after how long to reconcile again; 0 means never.
func requeueAfter(v cue.Value) (time.Duration, fault.Faults) {
	if !v.Exists() {
		return 0, nil
	}
	s, err := v.String()
	if err != nil {
		own, _ := ofComponent("", fault.FromCUE(v.Validate(), v)) // none when it is not decidable yet
		return 0, own
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fault.Faults{{Position: fault.PositionAt(v.Pos()), Path: "requeueAfter", Message: err.Error()}}
	}
	return d, nil
}
