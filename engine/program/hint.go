package program

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// withHints adds hints to the faults of a package.
func (s *Static) withHints(faults fault.Faults) fault.Faults {
	for i, f := range faults {
		if explained, is := s.explainPart(f); is {
			faults[i] = explained
			continue
		}
		switch a, missing := missingReferenceOf(f, s.index, s.value); {
		case f.Hint != "":
		case f.Name != "":
			faults[i].Hint = s.nameHint(f)
		case missing: // without a session, nothing can add it later
			faults[i].Message, faults[i].Hint = a.Reference.String()+" does not exist", HintAmong(a.Path[len(a.Path)-1], s.fieldsBeside(a.Path))
		}
	}
	return faults
}

// nameHint returns what to write for a name that nothing has.
func (s *Static) nameHint(f fault.Fault) string {
	if f.Name == "spec" || f.Name == "metadata" {
		return didYouMean("cr." + f.Name)
	}
	if near, ok := ClosestName(f.Name, s.namesInScope()); ok {
		return didYouMean(near)
	}
	if s.isWholeValue(f) {
		return fmt.Sprintf("a text stands in quotes: %q", f.Name)
	}
	return ""
}

// isWholeValue reports whether the name of a fault is all that is written as the value of a field.
func (s *Static) isWholeValue(f fault.Fault) bool {
	for n := range syntax.NodesIn(s.files...) {
		if field, ok := n.(*ast.Field); ok {
			if id, is := field.Value.(*ast.Ident); is && id.Name == f.Name && fault.TokenPositionOf(id.Pos()) == f.Origin {
				return true
			}
		}
	}
	return false
}

// namesInScope returns the names that every file of the package may refer to.
func (s *Static) namesInScope() []string {
	var names []string
	for _, m := range s.index.Fields() {
		names = append(names, m.Name())
	}
	for _, f := range s.files {
		for spec := range f.ImportSpecs() {
			if info, err := astutil.ParseImportSpec(spec); err == nil {
				names = append(names, info.Ident)
			}
		}
	}
	return names
}

// fieldsBeside returns the fields that there are in place of the last of a path.
func (s *Static) fieldsBeside(path []string) []string {
	v := s.value
	for _, name := range path[:len(path)-1] {
		v = v.LookupPath(cue.MakePath(syntax.Selector(name)))
	}
	return FieldNames(v)
}

// covered reports whether a fault about an unknown field repeats one of the given ones. CUE
// reports an unknown struct again for each of its fields.
func covered(by fault.Faults, other fault.Fault) bool {
	return other.Code == fault.UnknownField && slices.ContainsFunc(by, func(f fault.Fault) bool {
		return other.Path == f.Path || strings.HasPrefix(other.Path, f.Path+".")
	})
}

// Similar returns, for a fault that says that a closed struct does not have a field, which
// field was probably meant.
func (s *Static) Similar(f fault.Fault) (hint string, ok bool) {
	name, known, ok := unknownField(s.value, f)
	return typeHint(name, known), ok
}

// unknownField returns, for a fault that says that a closed struct does not have a field, the
// name of the field, and the other fields of the struct as v has it.
func unknownField(v cue.Value, f fault.Fault) (name string, others []string, ok bool) {
	sels := cue.ParsePath(f.Path).Selectors()
	last := len(sels) - 1
	if f.Code != fault.UnknownField || last < 0 || sels[last].LabelType() != cue.StringLabel {
		return "", nil, false
	}
	name = sels[last].Unquoted()
	others = slices.DeleteFunc(FieldNames(v.LookupPath(cue.MakePath(sels[:last]...))), func(k string) bool { return k == name })
	return name, others, true
}

// FieldNames returns the names of the fields of a struct, including optional ones.
func FieldNames(v cue.Value) []string {
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

// patternHint returns the pattern that the names of a struct's fields have to match, as a hint.
func patternHint(v cue.Value) string {
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	for err == nil && it.Next() {
		if sel := it.Selector(); sel.ConstraintType() == cue.PatternConstraint {
			return fmt.Sprintf("a name has to match %v", sel.Pattern())
		}
	}
	return ""
}

// HintAmong returns which of the known names was probably meant, or else all of them, or "" if
// there are none.
func HintAmong(name string, known []string) string {
	if near, ok := ClosestName(name, known); ok {
		return didYouMean(near)
	}
	if len(known) == 0 {
		return ""
	}
	return "there are " + strings.Join(known, ", ")
}

// ClosestNameHint is the hint for a field that refers to itself.
const ClosestNameHint = "a name means the closest field of that name: quote the label of the field, or rename what it should refer to"

func didYouMean(name string) string { return "did you mean " + name + "?" }
