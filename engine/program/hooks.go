package program

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// A Phase is a point of a rollout, or of a teardown, at which hooks run.
type Phase string

// The phases.
const (
	AfterDeploy             Phase = "afterDeploy"
	AfterDeployUnsuccessful Phase = "afterDeployUnsuccessful"
	AfterVerify             Phase = "afterVerify"
	AfterVerifyUnsuccessful Phase = "afterVerifyUnsuccessful"
	BeforeDelete            Phase = "beforeDelete"
)

// Phases are all phases, in the order of a resource's life.
var Phases = []Phase{AfterDeploy, AfterDeployUnsuccessful, AfterVerify, AfterVerifyUnsuccessful, BeforeDelete}

// A Hook is a component that runs at a phase, once for each change of its content.
type Hook struct {
	Phase     Phase
	Component Component
}

// StandsFor reports whether a hook stands for all those of its phase that cannot be
// listed, and a name could be one of them.
func (h Hook) StandsFor(component string) bool {
	return h.Component.Name == h.Phase.hook(computedName) && strings.HasPrefix(component, h.Phase.hook(""))
}

// hook returns the name of the component that an author's hook is: no component has
// one like it.
func (p Phase) hook(name string) string { return "hooks." + string(p) + "." + name }

// MayRun reports whether there may be hooks of a phase, as far as the text tells.
func (p *Program) MayRun(phase Phase) bool {
	may := p.index.foreign
	for _, hooks := range p.index.fields["hooks"] {
		eachMember(hooks.value, nil, func(m member) {
			may = may || m.kind == dynamic || m.kind == embedded || m.name == string(phase)
		})
	}
	return may
}

// The structs in which a hook may be written, each in the one before it. Each may have
// comprehensions.
const (
	inRoot = iota
	inHooks
	inPhase
	hookPlaces
)

// additions are what the comprehensions in a struct add to the hooks of a phase.
type additions struct {
	conditionals []conditional
	// embeds says that there is more in the struct than its text shows.
	embeds bool
}

// addHooks records what is written below hooks, which are components of a name that
// is their path.
func (x *index) addHooks(hooks member) {
	eachMember(hooks.value, nil, func(phase member) {
		for _, p := range Phases {
			switch {
			case phase.kind == pattern:
			case phase.kind != named:
				x.hooks[p][inHooks].embeds = true
			case phase.name == string(p):
				eachMember(phase.value, nil, func(hook member) { x.addHook(p, [hookPlaces]member{hooks, phase, hook}, 0) })
			}
		}
	})
}

// addHook records one member of a phase, with the members that it is in.
func (x *index) addHook(p Phase, in [hookPlaces]member, depth int) {
	at, hook := x.hooks[p], in[inPhase]
	name := ""
	switch hook.kind {
	case pattern:
		return
	case embedded:
		at[inPhase].embeds = true
		for _, d := range x.behind(hook, depth) {
			in[inPhase] = d
			x.addHook(p, in, depth+1)
		}
		return
	case named:
		name = p.hook(hook.name)
		x.addParts(name, hook)
		x.homes[name] = append(x.homes[name], hook)
	case dynamic:
		x.homes[computedName] = append(x.homes[computedName], hook)
	}
	for place, m := range in {
		if len(m.guards) > 0 || place == inPhase && hook.kind == dynamic {
			c := x.conditionalOf(member{name: name, field: hook.field, value: hook.value, guards: m.guards})
			at[place].conditionals = append(at[place].conditionals, c)
		}
	}
}

// hooks evaluates the hooks of every phase.
func (p *Program) hooks(root cue.Value) []Hook {
	all := root.LookupPath(hooksPath)
	if !all.Exists() && len(p.index.fields["hooks"]) == 0 {
		return nil
	}
	var out []Hook
	for _, phase := range Phases {
		var own cue.Value
		if all.Exists() {
			own = all.LookupPath(cue.MakePath(cue.Str(string(phase))))
		}
		var evaluated []Component
		for name, hook := range fields(own) {
			if p.tally.over() {
				return nil
			}
			evaluated = append(evaluated, p.component(phase.hook(name), hook))
		}
		for place, v := range [hookPlaces]cue.Value{root, all, own} {
			evaluated = p.holdHooks(evaluated, phase, place, v)
		}
		for _, c := range evaluated {
			out = append(out, Hook{Phase: phase, Component: c})
		}
	}
	return out
}

// holdHooks adds what the comprehensions in a struct may yet add to the hooks of a
// phase. Where it cannot be said which those are, one stands for all of them.
func (p *Program) holdHooks(evaluated []Component, phase Phase, place int, v cue.Value) []Component {
	text := p.index.hooks[phase][place]
	is, why := settlementOf(v)
	switch {
	case is == settled, place == inRoot && len(text.conditionals) == 0:
		return evaluated
	case is == wrong:
		return append(evaluated, Component{Name: phase.hook(computedName), When: Decision{Verdict: True}, Rendering: RenderedInvalid, Faults: why})
	}
	beside := p.index.hookGuards(phase, place)
	unlisted := text.unexplained(why, is, beside)
	for _, c := range text.conditionals {
		switch at := c.undecidedBy(why, is, beside); {
		case at < 0:
		case c.component == "":
			unlisted = at
		default:
			evaluated = p.holdOne(evaluated, c, unplaced(why[at], is))
		}
	}
	if unlisted < 0 || slices.ContainsFunc(evaluated, func(c Component) bool { return c.Name == phase.hook(computedName) }) {
		return evaluated
	}
	return p.holdOne(evaluated, conditional{component: phase.hook(computedName)}, unplaced(why[unlisted], is))
}

// hookGuards returns what is conditional in the struct that a phase's hooks are in,
// also for other phases.
func (x *index) hookGuards(phase Phase, place int) []conditional {
	if place == inPhase {
		return x.hooks[phase][place].conditionals
	}
	var out []conditional
	if place == inRoot {
		out = append(out, x.rootGuards...)
	}
	for _, p := range Phases {
		out = append(out, x.hooks[p][place].conditionals...)
	}
	return out
}

// unexplained returns which of some faults the text does not explain, so that it may
// hide a hook that the text does not show, or -1.
func (a additions) unexplained(faults fault.Faults, is settlement, beside []conditional) int {
	if is == masked {
		return map[bool]int{true: 0, false: -1}[a.embeds]
	}
	if len(beside) > 0 && !a.embeds {
		return -1
	}
	return slices.IndexFunc(faults, func(f fault.Fault) bool {
		return !slices.ContainsFunc(beside, func(c conditional) bool { return c.guardedAt(f.Position) })
	})
}
