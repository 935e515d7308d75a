package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A Growth is a place in the text at which the cost of an evaluation grows with what a
// user writes.
type Growth struct {
	Position fault.Position
	// Source is the source text there.
	Source string
	// Function is the called function, such as list.Range, with the path of its package, or "for".
	Function string
	// Amount is how much there is to do at most: numbers, elements, characters, bits.
	Amount Amount
	// Factors are the sizes that multiply in nested loops, each of another field that a user gives.
	Factors []Amount
}

// argument is the index of the argument with which the cost of a function grows.
var argument = map[string]int{
	"math/bits.Lsh":           1,
	"encoding/json.Unmarshal": 0, "encoding/json.UnmarshalStream": 0,
	"encoding/yaml.Unmarshal": 0, "encoding/yaml.UnmarshalStream": 0,
	"text/template.Execute": 0,
}

// growing are the functions whose cost grows with their result.
var growing = []string{"list.Range", "list.Repeat", "strings.Repeat"}

// A Limiter returns the limits of a field that is in so many lists and maps.
type Limiter func(schema cue.Value, within int) Interval

// A UserValue is something that a user gives: a schema, and what limits the fields of it.
type UserValue struct {
	Schema cue.Value
	Limits Limiter
}

// Growths returns where the cost of an evaluation grows with what users give, by position,
// as far as the text shows. Users give the root fields of the names in given.
func (x *Index) Growths(given map[string]UserValue) []Growth {
	s := &sizes{
		index: x,
		roots: given,
		found: map[place][]origin{},
		known: map[ast.Expr]Amount{},
	}
	var out []Growth
	for _, f := range x.files {
		around := []repeated{{all: constant(1)}}
		ast.Walk(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				out = append(out, s.growthOf(n)...)
			case *ast.Comprehension:
				loop, all := s.growthOfLoop(n, around[len(around)-1])
				out, around = append(out, loop...), append(around, all)
			}
			return true
		}, func(n ast.Node) {
			if _, ok := n.(*ast.Comprehension); ok {
				around = around[:len(around)-1]
			}
		})
	}
	slices.SortStableFunc(out, func(a, b Growth) int { return fault.Compare(a.Position, b.Position) })
	return out
}

// growthOf returns how a call grows.
func (s *sizes) growthOf(e *ast.CallExpr) []Growth {
	name := function(e.Fun)
	at, byArgument := argument[name]
	var amount Amount
	switch {
	case byArgument && at < len(e.Args):
		amount = s.of(e.Args[at])
	case slices.Contains(growing, name):
		amount = s.of(e)
	}
	if amount.From == "" {
		return nil
	}
	return []Growth{{Position: fault.PositionAt(e.Pos()), Source: Source(e), Function: name, Amount: amount}}
}

// repeated is how often the body of nested loops runs, and what decides that.
type repeated struct {
	all     Amount
	factors []Amount
}

// times returns how often the body of a loop over a source runs within others.
func (r repeated) times(source Amount) repeated {
	out := repeated{multiply(r.all, source), r.factors}
	known := slices.ContainsFunc(r.factors, func(a Amount) bool { return a.From == source.From })
	if source.From != "" && !known {
		out.factors = append(slices.Clone(r.factors), source)
	}
	return out
}

// growthOfLoop returns how a comprehension grows within others, and how often it runs. A
// source that is too large because a loop or a function made it is reported there.
func (s *sizes) growthOfLoop(c *ast.Comprehension, around repeated) ([]Growth, repeated) {
	out, own := around, false
	for _, clause := range c.Clauses {
		f, ok := clause.(*ast.ForClause)
		if !ok {
			continue
		}
		source := s.of(f.Source).count()
		if source.made && source.High > MaxGrowth {
			continue
		}
		out, own = out.times(source), own || source.From != ""
	}
	if !own || around.all.MayExceed(MaxGrowth) {
		return nil, out
	}
	return []Growth{{Position: fault.PositionAt(c.Pos()), Source: loopText(c), Function: "for", Amount: out.all, Factors: out.factors}}, out
}

// MaxGrowth is how many steps an evaluation may take in one place. CUE takes some thousands
// in a second, and the time grows faster than their number.
const MaxGrowth = 10_000

// loopText returns the clauses of a comprehension as they are written.
func loopText(c *ast.Comprehension) string {
	var texts []string
	for _, clause := range c.Clauses {
		if f, ok := clause.(*ast.ForClause); ok {
			texts = append(texts, forText(f))
		}
	}
	return strings.Join(texts, " ")
}

func forText(f *ast.ForClause) string { return "for " + f.Value.Name + " in " + Source(f.Source) }
