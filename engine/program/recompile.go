package program

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/source"
)

// A template is made from evaluations of a package of which only parts are known. This file
// is what it needs beyond Evaluate.

// A Recompiled package is compiled once more, with a change to its syntax and in a CUE
// context of its own. What is built in that context can be freed, unlike anything that is
// built in the context of a package that serves.
type Recompiled struct{ program *Program }

// Recompile returns the package compiled once more, with a change to its syntax.
func (p *Program) Recompile(change func(*build.Instance)) (*Recompiled, error) {
	inst, _, faults := buildInstance(p.snapshot)
	if len(faults) > 0 {
		return nil, faults
	}
	change(inst)
	out := *p
	out.compiled.base = cuecontext.New().BuildInstance(inst)
	return &Recompiled{&out}, nil
}

// WithCheapEnumerations returns a package that evaluates as this one does, but for a small part of the cost if it has large enumerations;
// see [syntax.MatchEnumerations]. Its Meta has the enumerations.
func (p *Program) WithCheapEnumerations() (*Program, error) {
	if !p.enumerates {
		return p, nil
	}
	return p.changed(func(*build.Instance) {})
}

// changed returns the package with a change to its syntax, and with expressions in the place of large enumerations.
func (p *Program) changed(change func(*build.Instance)) (*Program, error) {
	var shown []string
	recompiled, err := p.Recompile(func(inst *build.Instance) {
		shown = syntax.MatchEnumerations(inst)
		change(inst)
	})
	if err != nil {
		return nil, err
	}
	out := recompiled.program
	static, config, conversions := *p.static, *p.config, *p.conversions
	static.compiled, config.compiled, conversions.compiled = out.compiled, out.compiled, out.compiled
	out.static, out.config, out.conversions, out.shown = &static, &config, &conversions, shown
	out.secrets = &Secrets{index: p.index, static: &static, literals: p.secrets.literals}
	return out, nil
}

// WithoutDefaults returns a package in which some preferred alternatives stand without the defaults that take their place, so
// that one that fails is seen to.
func WithoutDefaults(p *Program, arms []syntax.PreferredAlternative) (*Program, error) {
	return p.changed(func(inst *build.Instance) { syntax.KeepPreferred(inst, arms, nil) })
}

// FailingAt returns a package that fails wherever it would evaluate one of some preferred alternatives.
func FailingAt(p *Program, arms []syntax.PreferredAlternative) (*Program, error) {
	never := &ast.ParenExpr{X: ast.NewBinExpr(token.AND, ast.NewString("never"), ast.NewLit(token.INT, "0"))}
	return p.changed(func(inst *build.Instance) { syntax.KeepPreferred(inst, arms, never) })
}

// Shown returns faults as a person reads them, without the expressions that [Program.WithCheapEnumerations] puts in the place of enumerations.
func (p *Program) Shown(faults ...fault.Fault) fault.Faults {
	if len(p.shown) == 0 {
		return faults
	}
	replacer := strings.NewReplacer(p.shown...)
	for i := range faults {
		faults[i].Message, faults[i].Hint = replacer.Replace(faults[i].Message), replacer.Replace(faults[i].Hint)
	}
	return faults
}

// LargestPart returns the part of a package that costs the most by the number of what is in it, if any has very many. It
// evaluates nothing, so that it has an answer for a package whose evaluation has none.
func LargestPart(s *source.Snapshot) (syntax.LargePart, bool) {
	inst, _, faults := buildInstance(s)
	if len(faults) > 0 {
		return syntax.LargePart{}, false
	}
	return syntax.LargestPart(inst.Files)
}

// Fill returns the package with data in it that is written as syntax, so that a part of it
// may be a type. Its context keeps the syntax.
func (r *Recompiled) Fill(data ast.Expr) cue.Value {
	base := r.program.compiled.base
	return base.FillPath(cue.Path{}, base.Context().BuildExpr(data)) //nolint:staticcheck // a value of another context would keep that one as well
}

// FillSession returns the package with a session in it.
func (p *Program) FillSession(s Session) cue.Value {
	return p.compiled.fill(p.views.filling(p.views.digested(s)))
}

// PresenceField is the field of live in which an open package asks whether there is a value; see
// package compile. Messages do not show it.
const PresenceField = "0p"

// ValuesField is the field of PresenceField in which the conditions of an open package find values.
const ValuesField = "0v"

// presencePrefix is how a reference to PresenceField begins.
const presencePrefix = `live."` + PresenceField + `".`

// RolloutOf returns the rollout of a package with data in it, whether or not the custom resource
// is valid. Messages name the objects of inputs that the session does not have.
func (r *Recompiled) RolloutOf(root cue.Value, s Session) (out Rollout, err error) {
	p := r.program
	defer p.recovered(&out, &err)
	e := &evaluator{Program: p, root: root, asked: map[string][]string{}, rendered: tally{limits: p.limits}}
	out, err = e.rollout()
	out.nameMissingInputs(s)
	return out, err
}

// ResourceOf returns the custom resource of an evaluated package, with the defaults of its schema.
func ResourceOf(root cue.Value) (map[string]any, error) {
	v, err := data(Lookup(root, "cr"))
	out, _ := v.(map[string]any)
	return out, err
}

// Located returns where and how the author wrote a condition of a component or a hook, by its path in
// an evaluated package, and which part of an input it rests on that is missing.
func (p *Program) Located(root cue.Value, component string, path cue.Path) Predicate {
	e := &evaluator{Program: p, root: root}
	v := root.LookupPath(PathOf(component))
	c := &componentEvaluator{evaluator: e, definition: declarationOf(p.index, component, v), value: v}
	var out Predicate
	out.Detail = inputMissing(c.locate(&out, root.LookupPath(path)))
	return out
}

// Literals returns the secrets that the package itself has written.
func (s *Secrets) Literals() []string { return s.literals }

// QuotesSecret reports whether a message of a rollout quotes what is in a rendered Secret, or one of
// some other secrets. Evaluate hides such a message.
func QuotesSecret(r Rollout, literals []string) bool {
	var quoting []string
	add := func(text string) {
		if strings.Contains(text, `"`) {
			quoting = append(quoting, text)
		}
	}
	for _, c := range r.All() {
		add(c.When.Detail)
		for _, text := range c.Missing {
			add(text)
		}
		for _, p := range c.conditions() {
			add(p.Detail)
		}
	}
	for _, in := range r.Inputs {
		add(in.Missing)
	}
	if len(quoting) == 0 {
		return false
	}
	literals = slices.Concat(literals, secretsIn(r))
	return slices.ContainsFunc(quoting, func(text string) bool { return quotes(text, literals) })
}

// SecretLeaves returns the paths of the values in the view of a session that count as secret.
func (p *Program) SecretLeaves(s Session, r Rollout) [][]string {
	s = p.views.digested(s)
	blind, _ := p.secrets.blind(s, r)
	var out [][]string
	differences(p.views.filling(s), p.views.filling(blind), nil, func(path []string) { out = append(out, path) })
	return out
}

// differences calls a function with the paths of the scalars that two trees of one form do not share.
func differences(a, b any, path []string, each func(path []string)) {
	switch v := a.(type) {
	case map[string]any:
		other, _ := b.(map[string]any)
		for name := range v {
			differences(v[name], other[name], append(slices.Clip(path), name), each)
		}
	case []any:
		other, _ := b.([]any)
		for i := range v {
			if i < len(other) {
				differences(v[i], other[i], append(slices.Clip(path), strconv.Itoa(i)), each)
			}
		}
	default:
		if a != b {
			each(path)
		}
	}
}
