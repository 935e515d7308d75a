package check

import (
	"context"
	"errors"
	"reflect"
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
	*dryrun.CachingProgram

	last program.Session
}

// Evaluate returns what Program.Evaluate returns.
func (e *evaluator) Evaluate(s program.Session) (program.Rollout, error) {
	e.last = s
	return e.CachingProgram.Evaluate(s)
}

// readyCase is a case that became ready, what was evaluated in the end, and the objects of inputs with which it was.
type readyCase struct {
	selection selection
	session   program.Session
	given     []map[string]any
	// keyed is true if a name contains the key of a map.
	keyed bool
}

// hidden finds defaults that hide an error: the alternative that they stand for fails in every case in which it is
// evaluated and what it refers to is there. To see whether it fails, the package is compiled without the default.
func (c *checker) hidden(ctx context.Context) error {
	all := syntax.PreferredAlternatives(c.program.Syntax())
	arms := all[:min(len(all), maxEffects)]
	tried := 0
	for _, g := range c.groupAlternatives(arms) {
		over, err := c.reportHidden(ctx, g)
		if err != nil {
			return err
		}
		if over {
			break
		}
		tried += len(g.arms)
	}
	if tried < len(all) {
		c.report.Parts = append(c.report.Parts, Truncation{Path: "defaults", Unit: "preferred alternatives", Tried: tried, Of: len(all)})
	}
	return nil
}

// alternativeGroup are preferred alternatives that may hide an error in the same cases. They are tried together: in most packages
// none fails, and each compilation costs more than many evaluations.
type alternativeGroup struct {
	arms  []syntax.PreferredAlternative
	cases []readyCase
}

// groupAlternatives returns alternatives by the cases in which they may hide an error, so that however many cases there are, there
// is at most one compilation for each alternative until one fails.
func (c *checker) groupAlternatives(arms []syntax.PreferredAlternative) (out []*alternativeGroup) {
	known := map[string]*alternativeGroup{}
	for _, arm := range arms {
		key, cases := make([]byte, len(c.settled)), []readyCase(nil)
		for i, s := range c.settled {
			if mayHide(arm, s.session) {
				key[i], cases = 1, append(cases, s)
			}
		}
		if known[string(key)] == nil {
			known[string(key)] = &alternativeGroup{cases: cases}
			out = append(out, known[string(key)])
		}
		known[string(key)].arms = append(known[string(key)].arms, arm)
	}
	return out
}

// mayHide reports whether the default of an alternative may hide an error in a session. One that refers to what is not
// there waits. A value of a live object beside a default of the same type fits where the default does, or there is another
// value that does: that of the default.
func mayHide(arm syntax.PreferredAlternative, s program.Session) bool {
	if !isThere(arm, s) {
		return false
	}
	return arm.Default == nil || reflect.TypeOf(arm.Default) != reflect.TypeOf(valueIn(s, arm.References[0].Path))
}

// reportHidden reports the alternatives that fail in at least one of their cases and succeed in none. It also reports
// whether the time ran out first.
func (c *checker) reportHidden(ctx context.Context, g *alternativeGroup) (over bool, err error) {
	h := &hiddenErrorSearch{checker: c, arms: g.arms}
	first, over, err := h.first(g.cases)
	if err != nil || over || first == nil {
		return over, err
	}
	for _, arm := range g.arms {
		one := h
		if len(g.arms) > 1 {
			one = &hiddenErrorSearch{checker: c, arms: []syntax.PreferredAlternative{arm}}
		}
		if over, err = one.conclude(ctx, g.cases); err != nil || over {
			return over, err
		}
	}
	return false, nil
}

// A hiddenErrorSearch finds out whether preferred alternatives fail. What is compiled for it is freed with it.
type hiddenErrorSearch struct {
	*checker

	arms []syntax.PreferredAlternative
	// without is the package without the defaults of the alternatives, and failing the one that fails where it would
	// evaluate one of them. They are nil until they are needed.
	without, failing *dryrun.CachingProgram
}

// first returns the first case in which an alternative fails, or nil.
func (h *hiddenErrorSearch) first(cases []readyCase) (first *readyCase, over bool, err error) {
	for _, s := range cases {
		if h.options.enough() {
			return nil, true, nil
		}
		if _, fails, err := h.fails(s.session); err != nil || fails {
			return &s, false, err
		}
	}
	return nil, false, nil
}

// isThere reports whether everything that an alternative refers to is there in a session.
func isThere(arm syntax.PreferredAlternative, s program.Session) bool {
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
		object := s.Live[path[1]][path[2]]
		if object == nil {
			return nil // as a map in an interface, it would not be nil
		}
		at, below = object, path[3:]
	}
	for _, name := range below {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	return at
}

// fails returns the first thing that is wrong with a session only if the alternatives have no defaults.
func (h *hiddenErrorSearch) fails(s program.Session) (fault.Fault, bool, error) {
	return h.differs(s, &h.without, program.WithoutDefaults)
}

// evaluates reports whether a session has an alternative evaluated.
func (h *hiddenErrorSearch) evaluates(s program.Session) (bool, error) {
	_, is, err := h.differs(s, &h.failing, program.FailingAt)
	return is, err
}

// differs returns the first thing that is wrong with a session only in a package that is changed.
func (h *hiddenErrorSearch) differs(s program.Session, changed **dryrun.CachingProgram, change func(*program.Program, []syntax.PreferredAlternative) (*program.Program, error)) (fault.Fault, bool, error) {
	if *changed == nil {
		p, err := change(h.program, h.arms)
		if err != nil {
			return fault.Fault{}, false, err
		}
		*changed = dryrun.NewCachingProgram(p)
	}
	before, ok := wrongs(h.evaluator.CachingProgram, s)
	after, decided := wrongs(*changed, s)
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
func wrongs(p *dryrun.CachingProgram, s program.Session) (out fault.Faults, ok bool) {
	r, err := p.Evaluate(s)
	if undecided, is := errors.AsType[*program.UndecidedError](err); is {
		return undecided.Faults, true
	}
	if err != nil || len(r.Invalid) > 0 || len(r.Misconfigured) > 0 {
		return nil, false // nothing can be said then
	}
	for _, c := range r.All() {
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

// conclude reports the one alternative if it fails in a case, unless it does not in another one, or with another value.
func (h *hiddenErrorSearch) conclude(ctx context.Context, cases []readyCase) (over bool, err error) {
	first, over, err := h.first(cases)
	if err != nil || over || first == nil {
		return over, err
	}
	for _, s := range h.settled {
		if h.options.enough() {
			return true, nil
		}
		if fine, err := h.isFine(s.session); err != nil || fine {
			return false, err
		}
	}
	if fine, over, err := h.isFineWithOthers(first.session); err != nil || over || fine {
		return over, err
	}
	f, _, err := h.fails(first.session)
	if err != nil {
		return false, err
	}
	given := first.given
	selection, _, err := h.smallest(first.selection, func(simpler selection) (bool, error) {
		out, err := h.try(ctx, simpler, true)
		if err != nil || !out.ready || !isThere(h.arms[0], out.settled) {
			return false, err
		}
		now, fails, err := h.fails(out.settled)
		if fails {
			f, given = now, out.given // the message may name a value of the resource
		}
		return fails, err
	})
	if err != nil {
		return false, err
	}
	arm := h.arms[0]
	h.found = append(h.found, found{problem{
		fault: fault.Fault{
			Position: arm.Position, Path: f.Path,
			Message: "the default beside " + arm.Source + " always takes its place, and hides an error: " + f.Message,
			Hint:    "correct the expression, or remove it",
		},
		live: given, early: true, isSmall: true,
	}, selection})
	return false, nil
}

// isFine reports whether the one alternative is evaluated and does not fail.
func (h *hiddenErrorSearch) isFine(s program.Session) (bool, error) {
	if !isThere(h.arms[0], s) {
		return false, nil
	}
	if _, fails, err := h.fails(s); err != nil || fails {
		return false, err
	}
	return h.evaluates(s)
}

// isFineWithOthers reports whether the one alternative may not fail with other values of what it refers to: the text, numbers
// and objects of a case are made up. Of what is no text and no number, nothing is known, and nothing of several of these:
// it may take that they change together.
func (h *hiddenErrorSearch) isFineWithOthers(s program.Session) (fine, over bool, err error) {
	var free int
	for _, r := range h.arms[0].References {
		switch valueIn(s, r.Path).(type) {
		case string, int64, float64:
			free++
		}
	}
	if free > 1 {
		return true, false, nil
	}
	for _, r := range h.arms[0].References {
		others, known := h.others(valueIn(s, r.Path), s)
		if !known {
			return true, false, nil
		}
		for _, value := range others {
			if h.options.enough() {
				return false, true, nil
			}
			changed, accepted := h.with(s, r.Path, value)
			if !accepted {
				continue
			}
			if fine, err := h.isFine(changed); err != nil || fine {
				return fine, false, err
			}
		}
	}
	return false, false, nil
}

// someNumbers are numbers that a package may take.
var someNumbers = []int64{-1, 0, 1, 2, 3, 5, 10, 100, 1000, 65535, 1 << 31}

// maxOthers is how many words a package may have for its texts to be tried: it would take seconds to evaluate it with each
// of more, and with some of them nothing is known. The word that matters may be the last one.
const maxOthers = 300

// others returns other values that a scalar may have, besides those of what an alternative also refers to.
func (h *hiddenErrorSearch) others(value any, s program.Session) (out []any, known bool) {
	arm := h.arms[0]
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
		texts, patterns := h.program.Syntax().Examples().Words()
		if len(texts)+len(patterns) > maxOthers {
			return nil, false
		}
		for _, candidate := range textSample(&apiextensionsv1.JSONSchemaProps{Type: "string"}, "", words{texts, patterns}).candidates {
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
func (h *hiddenErrorSearch) with(s program.Session, path []string, value any) (out program.Session, accepted bool) {
	if path[0] == "live" {
		return withLive(s, path, value), true
	}
	s.CR, _ = put(s.CR, path[1:], value).(map[string]any)
	metadata, _ := s.CR["metadata"].(map[string]any)
	asked := map[string]any{
		"apiVersion": s.CR["apiVersion"], "kind": s.CR["kind"], "spec": s.CR["spec"],
		"metadata": map[string]any{"name": metadata["name"], "namespace": metadata["namespace"]},
	}
	_, err := h.server.Admit(runtime.DeepCopyJSON(asked), nil)
	return s, err == nil
}
