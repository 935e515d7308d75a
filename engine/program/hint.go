package program

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast/astutil"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// withHints adds to the faults of a whole package what to write instead.
func (p *Program) withHints(faults fault.Faults) fault.Faults {
	e := &evaluator{Program: p, root: p.static}
	for i, f := range faults {
		switch a, leadsNowhere := e.awaits(f); {
		case f.Hint != "":
		case f.Name != "":
			if near, ok := Nearest(f.Name, p.namesInScope()); ok {
				faults[i].Hint = didYouMean(near)
			}
		case leadsNowhere: // without a session, it can never lead anywhere
			faults[i].Message, faults[i].Hint = a.Reference.String()+" does not exist", HintAmong(a.Path[len(a.Path)-1], p.fieldsBeside(a.Path))
		}
	}
	return faults
}

// namesInScope returns the names that any place of the package may use.
func (p *Program) namesInScope() []string {
	var names []string
	for _, m := range p.index.Fields() {
		names = append(names, m.Name())
	}
	for _, f := range p.files {
		for spec := range f.ImportSpecs() {
			if info, err := astutil.ParseImportSpec(spec); err == nil {
				names = append(names, info.Ident)
			}
		}
	}
	return names
}

// fieldsBeside returns the fields that there are in place of the last of a path.
func (p *Program) fieldsBeside(path []string) []string {
	v := p.static
	for _, name := range path[:len(path)-1] {
		v = v.LookupPath(cue.MakePath(syntax.Selector(name)))
	}
	return fieldNames(v)
}

// fieldNames returns the fields of a struct, also those that it only allows.
func fieldNames(v cue.Value) []string {
	var out []string
	if !v.Exists() {
		return nil
	}
	it, err := v.Fields(cue.Optional(true))
	for err == nil && it.Next() {
		out = append(out, it.Selector().Unquoted())
	}
	return out
}

// patternHint says which form the names of a struct's fields have.
func patternHint(v cue.Value) string {
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	for err == nil && it.Next() {
		if sel := it.Selector(); sel.ConstraintType() == cue.PatternConstraint {
			return fmt.Sprintf("a name has to match %v", sel.Pattern())
		}
	}
	return ""
}

// HintAmong says which name was probably meant, or which there are. It is empty
// when there are none.
func HintAmong(name string, known []string) string {
	if near, ok := Nearest(name, known); ok {
		return didYouMean(near)
	}
	if len(known) == 0 {
		return ""
	}
	return "there are " + strings.Join(known, ", ")
}

func didYouMean(name string) string { return "did you mean " + name + "?" }
