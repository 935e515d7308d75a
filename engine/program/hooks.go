package program

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/program/syntax"

	"operetta.dev/engine/fault"
)

// A HookPhase is a point of a rollout, or of a teardown, at which hooks run.
type HookPhase string

// The phases.
const (
	AfterDeploy             HookPhase = "afterDeploy"
	AfterDeployUnsuccessful HookPhase = "afterDeployUnsuccessful"
	AfterVerify             HookPhase = "afterVerify"
	AfterVerifyUnsuccessful HookPhase = "afterVerifyUnsuccessful"
	BeforeDelete            HookPhase = "beforeDelete"
)

// HookPhases are all phases, in the order of a resource's life.
var HookPhases = []HookPhase{AfterDeploy, AfterDeployUnsuccessful, AfterVerify, AfterVerifyUnsuccessful, BeforeDelete}

// A Hook is a component that runs at a phase, once for each change of its content.
type Hook struct {
	Phase     HookPhase
	Component Component
}

// MayBe reports whether a hook stands for the hooks of its phase whose names are undecided,
// and the component may be one of them.
func (h Hook) MayBe(component string) bool {
	return h.Component.Name == h.Phase.hook(syntax.ComputedName) && strings.HasPrefix(component, h.Phase.hook(""))
}

// hook returns the name of the component that an author's hook is: no component has
// one like it.
func (p HookPhase) hook(name string) string { return syntax.HookName(string(p), name) }

// MayRun reports whether there may be hooks of a phase, as far as the text shows.
func (p *Program) MayRun(phase HookPhase) bool {
	return p.index.MayHaveHooks(string(phase))
}

// hooks evaluates the hooks of every phase.
func (e *evaluator) hooks() []Hook {
	all := Lookup(e.root, "hooks")
	if !all.Exists() && !e.index.HasHooks() {
		return nil
	}
	var out []Hook
	for _, phase := range HookPhases {
		own := Lookup(all, string(phase))
		var evaluated []Component
		for name, hook := range fields(own) {
			if e.rendered.over() {
				return nil
			}
			evaluated = append(evaluated, e.component(phase.hook(name), hook))
		}
		for place, v := range []cue.Value{syntax.InRoot: e.root, syntax.InHooks: all, syntax.InPhase: own} {
			evaluated = e.holdHooks(evaluated, phase, syntax.Place(place), v)
		}
		for _, c := range evaluated {
			out = append(out, Hook{Phase: phase, Component: c})
		}
	}
	return out
}

// holdHooks adds the hooks that undecided comprehensions in a struct may still add to a phase.
// If their names are undecided, one hook stands for all of them.
func (e *evaluator) holdHooks(evaluated []Component, phase HookPhase, place syntax.Place, v cue.Value) []Component {
	text := e.index.HookAdditions(string(phase), place)
	is, why := comprehensionsOf(v)
	switch {
	case is == allDecided, place == syntax.InRoot && len(text.Conditionals) == 0:
		return evaluated
	case is == wrong:
		return append(evaluated, Component{Name: phase.hook(syntax.ComputedName), When: WhenResult{Verdict: True}, Rendering: RenderedInvalid, Faults: why})
	}
	beside := e.index.HookGuards(string(phase), place)
	unlisted := unexplained(text, why, is, beside)
	for _, c := range text.Conditionals {
		switch at := undecidedBy(c, why, is, beside); {
		case at < 0:
		case c.Component == "":
			unlisted = at
		default:
			evaluated = e.holdOne(evaluated, c, withoutPath(why[at], is))
		}
	}
	if unlisted < 0 || slices.ContainsFunc(evaluated, func(c Component) bool { return c.Name == phase.hook(syntax.ComputedName) }) {
		return evaluated
	}
	return e.holdOne(evaluated, syntax.Conditional{Component: phase.hook(syntax.ComputedName)}, withoutPath(why[unlisted], is))
}

// unexplained returns the index of a fault that none of the comprehensions in the text causes,
// so that it may hide a hook that the text does not show, or -1.
func unexplained(a syntax.Additions, faults fault.Faults, is comprehensionState, beside []syntax.Conditional) int {
	if is == masked {
		return map[bool]int{true: 0, false: -1}[a.Embeds]
	}
	if len(beside) > 0 && !a.Embeds {
		return -1
	}
	return slices.IndexFunc(faults, func(f fault.Fault) bool {
		return !slices.ContainsFunc(beside, func(c syntax.Conditional) bool { return c.GuardedAt(f.Position) })
	})
}
