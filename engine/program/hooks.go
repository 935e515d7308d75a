package program

import "cuelang.org/go/cue"

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

// hooks evaluates the hooks of every phase. A hook's name is its phase and the
// author's name for it, which no component has.
func (p *Program) hooks(v cue.Value) []Hook {
	if !v.Exists() {
		return nil
	}
	var out []Hook
	for _, phase := range Phases {
		for name, hook := range fields(v.LookupPath(cue.MakePath(cue.Str(string(phase))))) {
			out = append(out, Hook{Phase: phase, Component: p.component("hooks."+string(phase)+"."+name, hook)})
		}
	}
	return out
}
