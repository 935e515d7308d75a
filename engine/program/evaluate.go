package program

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"cuelang.org/go/cue"
)

// Evaluate returns what the package says to a session. It is pure and safe for
// concurrent use.
//
// It errors only when the evaluator itself fails (a panic in CUE). Whatever is
// wrong with the custom resource, a component or the status is in the Rollout,
// so that one part's fault does not hide the others.
func (p *Program) Evaluate(s Session) (r Rollout, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("package %s: the evaluator panicked: %v\n%s", p.name, cause, debug.Stack())
		}
	}()
	cr := crValue(s.CR)
	// The resource alone comes first: an invalid spec would otherwise show as
	// nonsense errors all over the components.
	if faults := p.ValidateCR(cr); len(faults) > 0 {
		return Rollout{Invalid: faults}, nil
	}
	v := p.base.FillPath(cue.MakePath(cue.Str("cr")), cr)
	if len(s.Live) > 0 {
		v = v.FillPath(cue.MakePath(cue.Str("live")), liveValue(s.Live))
	}
	r.Components = p.components(v)
	r.Status, r.StatusFaults = p.status(v)
	r.RequeueAfter = p.requeueAfter(v)
	return r, nil
}

// ValidateCR returns what is wrong with a custom resource by the package's
// schema, each fault with the path and the bound.
func (p *Program) ValidateCR(cr map[string]any) Faults {
	v := p.base.LookupPath(cue.MakePath(cue.Str("cr"))).FillPath(cue.Path{}, crValue(cr))
	faults := faultsOf(v.Validate(cue.Concrete(true)))
	for i := range faults {
		// The user of the resource knows spec.replicas, not cr.spec.replicas.
		faults[i].Path = trimPrefix(faults[i].Path, "cr.")
	}
	return faults
}

func trimPrefix(s, prefix string) string {
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):]
	}
	return s
}

// components evaluates every component, in the author's order.
func (p *Program) components(v cue.Value) []Component {
	it, err := v.LookupPath(cue.MakePath(cue.Str("components"))).Fields()
	if err != nil {
		return nil
	}
	var out []Component
	for it.Next() {
		out = append(out, p.component(it.Selector().Unquoted(), it.Value()))
	}
	slices.SortStableFunc(out, func(a, b Component) int {
		return p.index.rank(a.Name) - p.index.rank(b.Name)
	})
	return out
}

// status evaluates the author's status field by field. An incomplete field is
// left out: the engine keeps the rest.
func (p *Program) status(v cue.Value) (map[string]any, Faults) {
	it, err := v.LookupPath(cue.MakePath(cue.Str("status"))).Fields()
	if err != nil {
		return nil, nil
	}
	out := map[string]any{}
	var faults Faults
	for it.Next() {
		field := it.Value()
		if field.Validate(cue.Concrete(true)) == nil {
			value, err := toGo(field)
			if err == nil {
				out[it.Selector().Unquoted()] = value
				continue
			}
		}
		faults = append(faults, faultsOf(field.Validate())...)
	}
	return out, faults
}

func (p *Program) requeueAfter(v cue.Value) time.Duration {
	d, err := time.ParseDuration(stringOr(v.LookupPath(cue.MakePath(cue.Str("requeueAfter"))), ""))
	if err != nil {
		return 0 // absent, or not decidable yet; its form is the contract's to check
	}
	return d
}
