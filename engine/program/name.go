package program

import (
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// A contract is the one that a package embeds.
type contract struct {
	value cue.Value
	// names and hookNames match what it accepts as names.
	names, hookNames *regexp.Regexp
}

// contractOf returns the contract among the imports of a package.
func contractOf(ctx *cue.Context, inst *build.Instance) contract {
	for _, imp := range inst.Dependencies() {
		if imp.ImportPath == syntax.ContractPath {
			value := ctx.BuildInstance(imp)
			return contract{value, namePattern(value, "#Name"), namePattern(value, "#HookName")}
		}
	}
	return contract{}
}

// namePattern returns what the names of a definition of the contract match.
func namePattern(contract cue.Value, definition string) *regexp.Regexp {
	_, args := contract.LookupPath(cue.MakePath(cue.Def(definition))).Expr()
	for _, a := range args {
		if s, err := a.String(); err == nil {
			if pattern, err := regexp.Compile(s); err == nil {
				return pattern
			}
		}
	}
	return nil
}

// nameFault returns a fault if the name of a component, an object or another member is invalid.
// The contract judges literal names when the package is loaded; a
// computed name may be any text.
func (c contract) nameFault(path cue.Path) (fault.Fault, bool) {
	sels := path.Selectors()
	if len(sels) == 0 || c.names == nil || c.hookNames == nil {
		return fault.Fault{}, false
	}
	pattern := c.names
	if len(sels) == 3 && sels[0] == cue.Str("hooks") {
		pattern = c.hookNames
	}
	last := sels[len(sels)-1]
	if last.LabelType() != cue.StringLabel || pattern.MatchString(last.Unquoted()) {
		return fault.Fault{}, false
	}
	return fault.Fault{Path: path.String(), Message: "is no name", Hint: "a name has to match " + pattern.String()}, true
}

// namedMembers are the parts of a component whose members have names of the author's.
var namedMembers = []string{"dependsOn", "requires", "objects", "policy", "verify", "failed"}

// isNamed reports whether the author chooses the last name of a path.
func isNamed(path cue.Path) bool {
	sels := path.Selectors()
	if len(sels) > 0 && sels[0] == cue.Str("hooks") {
		sels = sels[1:] // a phase has components as well
	} else if len(sels) > 0 && sels[0] != cue.Str("components") {
		return len(sels) == 2 && sels[0] == cue.Str("inputs")
	}
	return len(sels) == 2 || len(sels) == 4 && sels[2].LabelType() == cue.StringLabel && slices.Contains(namedMembers, sels[2].Unquoted())
}

// explainUnknown explains why fields are unknown: their names are invalid, or they are parameters
// of a template. A template is one fault, however often it is used.
func (s *Static) explainUnknown(faults fault.Faults) fault.Faults {
	var out fault.Faults
	for _, f := range faults {
		path := cue.ParsePath(f.Path)
		if wrong, is := s.contract.nameFault(path); is && isNamed(path) {
			f.Message, f.Hint = wrong.Message, wrong.Hint
		} else if at, is := s.parameter(path); is {
			name := path.Selectors()[len(path.Selectors())-1].Unquoted()
			f.Position, f.Hint = at, "a component has no such part; a parameter of a template is a definition: write #"+name
			if slices.ContainsFunc(out, func(o fault.Fault) bool { return o.Position == at && o.Hint == f.Hint }) {
				continue
			}
		} else if by := s.closedBy(path.Selectors()); by != "" {
			f.Hint = by + " is closed and has no such field: end it with ..., or name it _" + strings.TrimPrefix(by, "#")
		}
		out = append(out, f)
	}
	return out
}

// closedBy returns the definition of the package that does not allow an unknown field, or "".
func (s *Static) closedBy(path []cue.Selector) string {
	var names []string
	for i, sel := range path {
		if sel.LabelType() != cue.StringLabel {
			return ""
		}
		names = append(names, sel.Unquoted())
		rest := path[i+1:]
		if len(rest) == 0 || len(names) < 2 {
			continue
		}
		for _, name := range s.index.DefinitionsOf(names) {
			in := s.value.LookupPath(cue.MakePath(append([]cue.Selector{cue.Def(name)}, rest[:len(rest)-1]...)...))
			if in.Exists() && in.IncompleteKind() == cue.StructKind && !in.Allows(rest[len(rest)-1]) {
				return name
			}
		}
	}
	return ""
}

// parameter returns where a template declares an unknown part of a component, unless that
// is a misspelled one.
func (s *Static) parameter(path cue.Path) (fault.Position, bool) {
	sels := path.Selectors()
	if len(sels) != 3 || sels[0] != cue.Str("components") || sels[2].LabelType() != cue.StringLabel {
		return fault.Position{}, false
	}
	if _, near := ClosestName(sels[2].Unquoted(), s.Parts()); near {
		return fault.Position{}, false
	}
	component := s.value.LookupPath(cue.MakePath(sels[:2]...))
	if at := declarationOf(s.index, sels[1].Unquoted(), component).Parameters(sels[2].Unquoted()); len(at) > 0 {
		return at[0], true
	}
	return fault.Position{}, false
}
