package vet

import (
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// A view is a package, with what several rules need of it.
type view struct {
	*program.Program
	*program.Static
	// template is the package, evaluated without a custom resource.
	template []program.Component
	// samples are evaluations with custom resources that are made up from the schema.
	samples []sample
	// scopes are the scopes of kinds.
	scopes Scopes
}

func newView(p *program.Program, given Scopes, made []sample) *view {
	return &view{Program: p, Static: p.Static(), template: p.Template(), samples: made, scopes: given.withOwn(p, made)}
}

// apply returns what rules find, by position.
func (v *view) apply(rules []rule) fault.Faults {
	var out fault.Faults
	for _, r := range rules {
		out = append(out, r.find(v)...)
	}
	return out.Sorted()
}

// evaluations returns the samples or, if none could be made up, the template: most names depend on
// the custom resource, but not all.
func (v *view) evaluations() []sample {
	if len(v.samples) > 0 {
		return v.samples
	}
	return []sample{{rollout: program.Rollout{Components: v.template}}}
}

// isEvaluated reports whether the evaluation without a custom resource has a fault at a place in the text, which the
// rule unset reports with its path.
func (v *view) isEvaluated(at fault.Position) bool {
	return slices.ContainsFunc(v.template, func(c program.Component) bool {
		return slices.ContainsFunc(c.Faults, func(f fault.Fault) bool { return f.Position == at })
	})
}

// at returns a fault with the path and position of something in the text.
func (v *view) at(path ...string) fault.Fault {
	return fault.Fault{Position: v.Syntax().PositionOf(path...), Path: joined(path...)}
}

// joined returns a path in CUE's notation.
func joined(path ...string) string { return syntax.Reference{Path: path}.String() }

// placed is an object and its component.
type placed struct {
	component string
	program.Object
}

func (p placed) path(below ...string) string {
	return joined(append([]string{"components", p.component, "objects", p.Name}, below...)...)
}

// objects returns the objects of a sample that should exist and whose identity is known. Components
// that exclude each other may share an object.
func (s sample) objects() []placed {
	var out []placed
	for _, c := range s.rollout.Components {
		for _, o := range c.Objects {
			if c.When.Verdict == program.True && o.Identity.Known() {
				out = append(out, placed{c.Name, o})
			}
		}
	}
	return out
}
