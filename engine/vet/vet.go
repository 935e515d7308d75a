package vet

import (
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// rules are all that is looked for.
var rules = []func(*view) fault.Faults{
	references,
	edges,
	hookEdges,
	cycles,
	rendering,
	waitsForItself,
	identities,
	reads,
	attributes,
	untrusted,
	defaults,
	comparisons,
	unsupported,
	patchables,
}

// warned are all that is warned of: what is right and probably not meant.
var warned = []func(*view) fault.Faults{
	copies,
	growth,
	cuts,
}

// Package returns what is wrong with a package, by position.
func Package(p *program.Program) fault.Faults { return newView(p, nil).apply(rules) }

// Warnings returns what is right and probably not meant, by position. Each is a line of the
// author's, in the form of a fault.
func Warnings(p *program.Program) fault.Faults { return newView(p, nil).apply(warned) }

// All returns what Package and Warnings do, for the price of one of them, and asks the author
// for the definitions of the kinds of which nobody says where their objects live: a cluster
// would know. The scopes are of the kinds whose definitions were given.
func All(p *program.Program, given Scopes) (faults, warnings, unknown fault.Faults) {
	v := newView(p, given)
	return v.apply(rules), v.apply(warned), v.apply([]func(*view) fault.Faults{unknownKinds})
}

func newView(p *program.Program, given Scopes) *view {
	made := samples(p)
	return &view{Program: p, template: p.Template(), samples: made, scopes: given.withOwn(p, made)}
}

// apply returns what some rules find, by position.
func (v *view) apply(rules []func(*view) fault.Faults) fault.Faults {
	var out fault.Faults
	for _, rule := range rules {
		out = append(out, rule(v)...)
	}
	return out.Sorted()
}

// A view is a program with what several rules look at.
type view struct {
	*program.Program
	// template is the package without a custom resource.
	template []program.Component
	// samples are evaluations with custom resources made up from the schema.
	samples []sample
	// scopes are where the objects of kinds live.
	scopes Scopes
}

// missing reports whether a name cannot be there below a path of the text, and
// which names are.
func (v *view) missing(name string, path ...string) (known []string, missing bool) {
	known, open := v.Syntax().Names(path...)
	return known, !open && !slices.Contains(known, name)
}

// joined returns a path in CUE's notation.
func joined(path ...string) string { return syntax.Reference{Path: path}.String() }
