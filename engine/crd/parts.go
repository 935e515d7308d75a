package crd

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// parts are the conjuncts of a struct or a list, before evaluation merges them.
//
//	null | [...string] & list.MinItems(1) | *["a"]
//	 │          │             │                └── the default: not a part of the type
//	 │          types         calls
//	 null
type parts struct {
	types []cue.Value
	calls []call
	null  bool
	// constants are the defaults that were left out of types.
	constants []cue.Value
	// alternatives is the most types that any one disjunction leaves a choice of.
	alternatives int
	seen         map[cue.Value]bool // the references that were followed
}

// call is a validator such as list.MinItems(1).
type call struct {
	name string // list.MinItems
	args []cue.Value
	pos  cue.Value // where it was written
}

func takeApart(v cue.Value) parts {
	p := parts{seen: map[cue.Value]bool{}}
	p.add(v, 0)
	return p
}

func (p *parts) add(v cue.Value, depth int) {
	op, args := v.Expr()
	switch {
	case depth > maxChain:
		p.types = append(p.types, v)
	case op == cue.AndOp:
		for _, a := range args {
			p.add(a, depth+1)
		}
	case op == cue.OrOp:
		p.either(v, args, depth)
	case op == cue.CallOp && isValidator(v):
		p.calls = append(p.calls, call{callName(args[0]), args[1:], v})
	case isValidator(v) && calls(v):
		_, args := v.Eval().Expr()
		p.calls = append(p.calls, call{callName(args[0]), args[1:], v})
	case op == cue.SelectorOp || op == cue.IndexOp:
		to := cue.Dereference(v)
		switch {
		case to == v || !to.Exists():
			p.types = append(p.types, v)
		case !p.seen[to]: // A & A is A
			p.seen[to] = true
			p.add(to, depth+1)
		}
	case op == cue.NoOp && len(args) == 1 && args[0] != v:
		// A disjunction whose default is an instance of the only other arm.
		p.add(args[0], depth+1)
	default:
		p.types = append(p.types, v)
	}
}

// either adds the arms of a disjunction. Its default is left out: it is a value of the
// type that the other arms describe.
func (p *parts) either(v cue.Value, arms []cue.Value, depth int) {
	preferred, _ := v.Default()
	alternatives := 0
	for _, arm := range arms {
		switch {
		case arm.IncompleteKind() == cue.NullKind:
			p.null = true
		case isConstant(arm) && equalData(preferred, arm):
			// Default does not tell a default from the only arm that evaluation left,
			// which it is beside a list that must not be empty.
			p.constants = append(p.constants, arm)
		default:
			alternatives++
			p.add(arm, depth+1)
		}
	}
	p.alternatives = max(p.alternatives, alternatives)
}

// base is the value without its validators, its null and its default.
func (p parts) base(v cue.Value) cue.Value {
	switch {
	case len(p.types) == 0, p.alternatives > 1:
		return v
	case v.IncompleteKind() == cue.BottomKind, v.IncompleteKind() == cue.ListKind, v.Kind() == cue.BottomKind && p.collection():
		base := p.types[0]
		for _, t := range p.types[1:] {
			base = base.Unify(t)
		}
		return base
	}
	return v
}

// collection holds if all types are structs, or all are lists.
func (p parts) collection() bool {
	var kinds cue.Kind
	for _, t := range p.types {
		kinds |= t.IncompleteKind()
	}
	return kinds == cue.StructKind || kinds == cue.ListKind
}

// covers holds if all defaults are of the type base: it adds nothing to them. One that is
// not is an alternative. (Subsume would refuse a default that lacks an optional field.)
func (p parts) covers(base cue.Value) bool {
	return !slices.ContainsFunc(p.constants, func(c cue.Value) bool {
		return !equalData(base.Unify(c), c)
	})
}

// equalData compares what two values are as JSON. Value.Equals also compares the
// markers of the fields that they come from.
func equalData(a, b cue.Value) bool {
	x, errX := a.MarshalJSON()
	y, errY := b.MarshalJSON()
	return errX == nil && errY == nil && equalJSON(x, y)
}

// isValidator tells validators from functions whose result is the value.
func isValidator(v cue.Value) bool {
	return v.Kind() == cue.BottomKind
}

// callName is the name of a validator as it is written: strings.MinRunes.
func callName(fn cue.Value) string {
	return strings.TrimSuffix(fmt.Sprint(fn), "()")
}

// calls holds for a validator that is written without brackets: list.IsSortedStrings.
func calls(v cue.Value) bool {
	op, _ := v.Eval().Expr()
	return op == cue.CallOp
}

// isConstant holds for a value that leaves nothing open. [...int] is not one, although it
// has the default [].
func isConstant(v cue.Value) bool {
	return isConcrete(v) && !v.LookupPath(cue.MakePath(cue.AnyIndex)).Exists()
}

func isConcrete(v cue.Value) bool { return v.Validate(cue.Concrete(true)) == nil }
