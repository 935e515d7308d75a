package check

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// An evaluator is a program that remembers, and the session that it was asked about last.
type evaluator struct {
	*dryrun.Remembering

	last program.Session
}

// Evaluate returns what Program.Evaluate returns.
func (e *evaluator) Evaluate(s program.Session) (program.Rollout, error) {
	e.last = s
	return e.Remembering.Evaluate(s)
}

// settled is a case that became ready, and what was evaluated in the end.
type settled struct {
	selection selection
	session   program.Session
}

// hidden finds defaults that hide an error: the alternative that they stand for fails in every case in which it is
// evaluated and what it refers to is there. To see whether it fails, the package is compiled without the default.
func (c *checker) hidden(ctx context.Context) error {
	arms := syntax.Arms(c.program.Syntax())
	if all := len(arms); all > maxEffects {
		arms = arms[:maxEffects]
		c.report.Parts = append(c.report.Parts, Part{Path: "defaults", Unit: "preferred alternatives", Tried: maxEffects, Of: all})
	}
	h := &hiding{checker: c, without: map[string]*dryrun.Remembering{}, failing: map[string]*dryrun.Remembering{}}
	failed := make([][]settled, len(arms))
	for _, s := range c.settled {
		if len(arms) == 0 || c.options.enough() {
			return nil
		}
		if err := h.note(s, arms, failed); err != nil {
			return err
		}
	}
	for i, arm := range arms {
		if len(failed[i]) == 0 {
			continue
		}
		if err := h.conclude(ctx, arm, failed[i]); err != nil {
			return err
		}
	}
	return nil
}

// A hiding finds out which preferred alternatives fail.
type hiding struct {
	*checker

	// without are the packages without the defaults of some alternatives, and failing those that fail where they would
	// evaluate one, by the positions of the alternatives.
	without, failing map[string]*dryrun.Remembering
}

// note notes which alternatives fail in a case. They are tried together first: in most packages none fails. Those that
// refer to what is not there are left out, because they wait.
func (h *hiding) note(s settled, arms []syntax.Arm, failed [][]settled) error {
	var there []syntax.Arm
	for _, arm := range arms {
		if isThere(arm, s.session) {
			there = append(there, arm)
		}
	}
	if len(there) == 0 {
		return nil
	}
	if _, fails, err := h.fails(s.session, there...); err != nil || !fails {
		return err
	}
	for i, arm := range arms {
		if !isThere(arm, s.session) {
			continue
		}
		_, fails, err := h.fails(s.session, arm)
		if err != nil {
			return err
		}
		if fails {
			failed[i] = append(failed[i], s)
		}
	}
	return nil
}

// isThere reports whether everything that an alternative refers to is there in a session.
func isThere(arm syntax.Arm, s program.Session) bool {
	return !slices.ContainsFunc(arm.References, func(r syntax.Reference) bool { return valueIn(s, r.Path) == nil })
}

// valueIn returns the value of a session at a path, or nil.
func valueIn(s program.Session, path []string) any {
	var at any = s.CR
	below := path[1:]
	if path[0] == "live" {
		if len(path) < 3 {
			return nil
		}
		at, below = s.Live[path[1]][path[2]], path[3:]
	}
	for _, name := range below {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	return at
}

// fails returns the first thing that is wrong with a session only if some alternatives have no defaults.
func (h *hiding) fails(s program.Session, arms ...syntax.Arm) (fault.Fault, bool, error) {
	return h.differs(s, arms, h.without, program.Preferring)
}

// evaluates reports whether a session has an alternative evaluated.
func (h *hiding) evaluates(s program.Session, arm syntax.Arm) (bool, error) {
	_, is, err := h.differs(s, []syntax.Arm{arm}, h.failing, program.Failing)
	return is, err
}

// differs returns the first thing that is wrong with a session only in a package that is changed.
func (h *hiding) differs(s program.Session, arms []syntax.Arm, known map[string]*dryrun.Remembering, change func(*program.Program, []syntax.Arm) (*program.Program, error)) (fault.Fault, bool, error) {
	key := ""
	for _, arm := range arms {
		key += arm.Position.String() + " " + strconv.Itoa(arm.Offset) + " "
	}
	changed := known[key]
	if changed == nil {
		p, err := change(h.program, arms)
		if err != nil {
			return fault.Fault{}, false, err
		}
		changed = dryrun.NewRemembering(p)
		known[key] = changed
	}
	before, ok := wrongs(h.evaluator.Remembering, s)
	after, decided := wrongs(changed, s)
	if !ok || !decided {
		return fault.Fault{}, false, nil // whatever it is, it is no matter of these alternatives
	}
	for _, f := range after {
		if !slices.ContainsFunc(before, func(o fault.Fault) bool { return o.Path == f.Path }) {
			return f, true, nil
		}
	}
	return fault.Fault{}, false, nil
}

// wrongs returns what is wrong with a session, except in components that are excluded. It is not ok if nothing can be said.
func wrongs(p *dryrun.Remembering, s program.Session) (out fault.Faults, ok bool) {
	r, err := p.Evaluate(s)
	if undecided, is := errors.AsType[*program.UndecidedError](err); is {
		return undecided.Faults, true
	}
	if err != nil || len(r.Invalid) > 0 || len(r.Misconfigured) > 0 {
		return nil, false
	}
	components := slices.Clone(r.Components)
	for _, hook := range r.Hooks {
		components = append(components, hook.Component)
	}
	for _, c := range components {
		if c.When.Verdict == program.False {
			continue
		}
		out = append(out, c.Faults...)
		if c.When.Verdict == program.Broken {
			out = append(out, fault.Fault{Path: "components." + c.Name + ".when", Message: c.When.Detail})
		}
		for _, condition := range slices.Concat(c.Requires, c.Verify, c.Failed) {
			if condition.Verdict == program.Broken {
				out = append(out, fault.Fault{Position: condition.Position, Path: verifyPath(c.Name, condition.Name), Message: condition.Detail})
			}
		}
	}
	return append(out, r.StatusFaults...), true
}

// conclude reports an alternative that fails in some cases, unless it does not in another one, or with another value.
func (h *hiding) conclude(ctx context.Context, arm syntax.Arm, failed []settled) error {
	for _, s := range h.settled {
		if h.options.enough() {
			return nil
		}
		if fine, err := h.isFine(s.session, arm); err != nil || fine {
			return err
		}
	}
	first := failed[0]
	if fine, err := h.isFineWithOthers(first.session, arm); err != nil || fine {
		return err
	}
	f, _, err := h.fails(first.session, arm)
	if err != nil {
		return err
	}
	selection, _, err := h.smallest(first.selection, func(simpler selection) (bool, error) {
		out, err := h.try(ctx, simpler, true)
		if err != nil || !out.ready || !isThere(arm, out.settled) {
			return false, err
		}
		_, fails, err := h.fails(out.settled, arm)
		return fails, err
	})
	if err != nil {
		return err
	}
	h.found = append(h.found, found{problem{
		fault: fault.Fault{
			Position: arm.Position, Path: f.Path,
			Message: "the default beside " + arm.Source + " always takes its place, and hides an error: " + f.Message,
			Hint:    "correct the expression, or remove it",
		},
		early: true, isSmall: true,
	}, selection})
	return nil
}

// isFine reports whether an alternative is evaluated and does not fail.
func (h *hiding) isFine(s program.Session, arm syntax.Arm) (bool, error) {
	if !isThere(arm, s) {
		return false, nil
	}
	if _, fails, err := h.fails(s, arm); err != nil || fails {
		return false, err
	}
	return h.evaluates(s, arm)
}

// isFineWithOthers reports whether an alternative may not fail with other values of what it refers to: the text, numbers
// and objects of a case are made up. Of what is no text and no number, nothing is known.
func (h *hiding) isFineWithOthers(s program.Session, arm syntax.Arm) (bool, error) {
	for _, r := range arm.References {
		others, known := h.others(valueIn(s, r.Path), arm, s)
		if !known {
			return true, nil
		}
		for _, value := range others {
			if h.options.enough() {
				return true, nil
			}
			changed, accepted := h.with(s, r.Path, value)
			if !accepted {
				continue
			}
			if fine, err := h.isFine(changed, arm); err != nil || fine {
				return fine, err
			}
		}
	}
	return false, nil
}

// someNumbers are numbers that a package may take.
var someNumbers = []int64{-1, 0, 1, 2, 3, 5, 10, 100, 1000, 65535, 1 << 31}

// others returns other values that a scalar may have, besides those of what an alternative also refers to.
func (h *hiding) others(value any, arm syntax.Arm, s program.Session) (out []any, known bool) {
	switch value.(type) {
	case bool:
		return []any{true, false}, true
	case int64, float64:
		for _, n := range someNumbers {
			out = append(out, n)
		}
		for _, text := range arm.Numbers {
			if n, err := strconv.ParseInt(text, 0, 64); err == nil {
				out = append(out, n-1, n, n+1)
			}
		}
	case string:
		for _, candidate := range textSample(&apiextensionsv1.JSONSchemaProps{Type: "string"}, "", wordsOf(h.program)).candidates {
			out = append(out, candidate(0))
		}
	default:
		return nil, false
	}
	for _, r := range arm.References {
		out = append(out, valueIn(s, r.Path))
	}
	return out, true
}

// with returns a session with another value at a path. It is not accepted if the schema of the resource refuses it.
func (h *hiding) with(s program.Session, path []string, value any) (out program.Session, accepted bool) {
	if path[0] == "live" {
		s.Live = maps.Clone(s.Live)
		s.Live[path[1]] = maps.Clone(s.Live[path[1]])
		s.Live[path[1]][path[2]], _ = withValue(s.Live[path[1]][path[2]], path[3:], value).(map[string]any)
		return s, true
	}
	s.CR, _ = withValue(s.CR, path[1:], value).(map[string]any)
	metadata, _ := s.CR["metadata"].(map[string]any)
	asked := map[string]any{
		"apiVersion": s.CR["apiVersion"], "kind": s.CR["kind"], "spec": s.CR["spec"],
		"metadata": map[string]any{"name": metadata["name"], "namespace": metadata["namespace"]},
	}
	_, err := h.server.Admit(runtime.DeepCopyJSON(asked), nil)
	return s, err == nil
}

// withValue returns data with another value at a path that it has.
func withValue(data any, path []string, value any) any {
	m, is := data.(map[string]any)
	if len(path) == 0 || !is {
		return value
	}
	out := maps.Clone(m)
	out[path[0]] = withValue(m[path[0]], path[1:], value)
	return out
}
