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
//	 │          │             │                └── the default: not part of the type
//	 │          types         calls
//	 null
type parts struct {
	types []cue.Value
	calls []validatorCall
	null  bool
	// constants are the defaults that were left out of types.
	constants []cue.Value
	// alternatives is the largest number of types in any one disjunction.
	alternatives int
	// arms are those of the last disjunction with several types, and choices is how many such disjunctions there are.
	arms    []cue.Value
	choices int
	seen    map[cue.Value]bool // the references that were followed
}

// validatorCall is a validator such as list.MinItems(1).
type validatorCall struct {
	name string // list.MinItems
	args []cue.Value
	pos  cue.Value // has the position of the call
}

func partsOf(v cue.Value) parts {
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
		p.addDisjunction(v, args, depth)
	case isValidator(v) && (op == cue.CallOp || isCall(v)):
		if op != cue.CallOp {
			_, args = v.Eval().Expr()
		}
		p.calls = append(p.calls, validatorCall{callName(args[0]), args[1:], v})
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

// addDisjunction adds the arms of a disjunction. It leaves out the default, which is a value
// of the type that the other arms describe.
func (p *parts) addDisjunction(v cue.Value, arms []cue.Value, depth int) {
	standard, _ := v.Default()
	preferred, notOne := standard.MarshalJSON() // once: without a default it fails for all arms together
	var alternatives []cue.Value
	for _, arm := range arms {
		switch {
		case arm.IncompleteKind() == cue.NullKind:
			p.null = true
		case notOne == nil && isConstant(arm) && isData(arm, preferred):
			// Value.Default returns either the default or the only arm that evaluation left.
			// The latter happens next to a list that must not be empty.
			p.constants = append(p.constants, arm)
		default:
			alternatives = append(alternatives, arm)
			p.add(arm, depth+1)
		}
	}
	p.alternatives = max(p.alternatives, len(alternatives))
	if len(alternatives) > 1 {
		p.arms, p.choices = alternatives, p.choices+1
	}
}

// base returns the value without its validators, its null and its default.
func (p parts) base(v cue.Value) cue.Value {
	switch {
	case len(p.types) == 0, p.alternatives > 1:
		return v
	case v.IncompleteKind() == cue.BottomKind, v.IncompleteKind() == cue.ListKind, v.Kind() == cue.BottomKind && p.isStructOrList():
		base := p.types[0]
		for _, t := range p.types[1:] {
			base = base.Unify(t)
		}
		return base
	}
	return v
}

// isStructOrList reports whether all types are structs, or all are lists.
func (p parts) isStructOrList() bool {
	var kinds cue.Kind
	for _, t := range p.types {
		kinds |= t.IncompleteKind()
	}
	return kinds == cue.StructKind || kinds == cue.ListKind
}

// acceptsDefaults reports whether all defaults are of the type base, so that unifying them with
// base adds nothing. A default that is not of this type is an alternative. (Subsume would
// refuse a default that lacks an optional field.)
func (p parts) acceptsDefaults(base cue.Value) bool {
	return !slices.ContainsFunc(p.constants, func(c cue.Value) bool {
		return !equalData(base.Unify(c), c)
	})
}

// equalData compares two values as JSON. Value.Equals also compares the optional markers of
// their fields.
func equalData(a, b cue.Value) bool {
	x, err := a.MarshalJSON()
	return err == nil && isData(b, x)
}

// isData reports whether a value is the same as some JSON.
func isData(v cue.Value, data []byte) bool {
	own, err := v.MarshalJSON()
	return err == nil && equalJSON(own, data)
}

// isValidator reports whether a call is a validator, and not a function whose result is the
// value.
func isValidator(v cue.Value) bool {
	return v.Kind() == cue.BottomKind
}

// callName returns the name of a validator as it is written: strings.MinRunes.
func callName(fn cue.Value) string {
	return strings.TrimSuffix(fmt.Sprint(fn), "()")
}

// isCall reports whether a value evaluates to a call. That finds a validator that is written
// without parentheses: list.IsSortedStrings.
func isCall(v cue.Value) bool {
	op, _ := v.Eval().Expr()
	return op == cue.CallOp
}

// isConstant reports whether a value is concrete and closed. [...int] is not, although it has
// the default [].
func isConstant(v cue.Value) bool {
	return isConcrete(v) && !v.LookupPath(cue.MakePath(cue.AnyIndex)).Exists()
}

func isConcrete(v cue.Value) bool { return v.Validate(cue.Concrete(true)) == nil }
