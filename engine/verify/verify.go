// Package verify judges whether an object or a component is healthy. It is pure: its input
// are live objects and the verdicts of predicates; it reads no cluster and evaluates no CUE.
//
// An object is judged by kstatus, except for the kinds in kinds.go, which kstatus calls
// current too early, in progress forever, or judges by the clock. A kind that neither knows
// is judged by its Ready condition, and without one by its existence. docs/readiness.md
// describes the result for each kind, and package test/readiness has the cases.
package verify

import (
	"fmt"

	"operetta.dev/engine/program"
)

// Health is the state of an object or of a component.
type Health string

// The states of health.
const (
	// Ready: it is healthy.
	Ready Health = "Ready"
	// Progressing: it is not healthy yet, and may become healthy by itself.
	Progressing Health = "Progressing"
	// Failed: it will not become healthy without a change.
	Failed Health = "Failed"
	// Broken: it cannot be judged, because a predicate of the package is wrong.
	Broken Health = "Broken"
)

// A Judgement is a state of health with its reason.
type Judgement struct {
	Health Health
	// Message says what is awaited or wrong; it is empty for Ready. It contains no time
	// and no count that changes while the state stays the same.
	Message string
}

func ready() Judgement                  { return Judgement{Health: Ready} }
func progressing(text string) Judgement { return Judgement{Health: Progressing, Message: text} }
func failed(text string) Judgement      { return Judgement{Health: Failed, Message: text} }

// Predicates judges a component by its predicates: a failure that holds or is broken comes
// first, then a broken verification, then the first verification that does not hold.
func Predicates(verify, failures []program.Predicate) Judgement {
	for _, p := range failures {
		switch p.Verdict {
		case program.True:
			return Judgement{Health: Failed, Message: fmt.Sprintf("failed.%s holds: %s", p.Name, p.Explain())}
		case program.Broken:
			return Judgement{Health: Broken, Message: fmt.Sprintf("failed.%s cannot be decided: %s", p.Name, p.Explain())}
		case program.False, program.Unknown: // it has not failed as far as is known
		}
	}
	first := Judgement{Health: Ready}
	for _, p := range verify {
		switch p.Verdict {
		case program.True:
		case program.Broken:
			return Judgement{Health: Broken, Message: fmt.Sprintf("verify.%s cannot be decided: %s", p.Name, p.Explain())}
		case program.False, program.Unknown:
			if first.Health == Ready {
				first = Judgement{Health: Progressing, Message: fmt.Sprintf("verify.%s: %s", p.Name, p.Explain())}
			}
		}
	}
	return first
}
