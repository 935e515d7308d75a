package program

import (
	"cmp"
	"maps"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// configAttribute marks fields of the configuration that only the administrator sets, as
// @config(admin) on a field or in a struct. It covers all fields below.
const (
	configAttribute = "config"
	configAdmin     = "admin"
)

// locked is the part of a value that only the administrator sets. nil is no part.
type locked struct {
	// all is everything, at and below the value.
	all      bool
	position fault.Position
	fields   map[string]*locked
	// others are of the fields of any other name, and of the elements of a list.
	others *locked
}

// maxAround bounds the number of places that a value and the values around it come from.
const maxAround = 200

// readLocked returns the part of the configuration that only the administrator sets, or nil. It
// is quick for most packages, which have no such attribute.
func (c *Config) readLocked(inst *build.Instance) *locked {
	files := slices.Clone(inst.Files)
	for _, imported := range inst.Dependencies() {
		files = append(files, imported.Files...)
	}
	if !slices.ContainsFunc(attributesIn(files), func(a Attribute) bool { return a.Name == configAttribute }) {
		return nil
	}
	return lockedIn(c.Schema(), nil)
}

// lockedIn returns the part of a value that only the administrator sets, or nil. A value that
// comes from the same place as one around it is a recursive definition, which has no end; then
// all of it is the administrator's, because it may have marks further down.
func lockedIn(v cue.Value, around []token.Pos) *locked {
	if !v.Exists() {
		return nil
	}
	out := &locked{position: fault.PositionAt(v.Pos()), fields: map[string]*locked{}}
	parts := partsOf(v)
	again := func(part cue.Value) bool { return part.Pos().IsValid() && slices.Contains(around, part.Pos()) }
	if len(around) > maxAround || slices.ContainsFunc(parts[1:], again) {
		out.all = true
		return out
	}
	for _, part := range parts {
		around = append(slices.Clip(around), part.Pos())
	}
	for _, part := range parts {
		if isLocked(part) {
			out.all = true
			return out
		}
		if element := part.LookupPath(cue.MakePath(cue.AnyIndex)); element.Exists() {
			out.others = union(out.others, lockedIn(element, around))
		}
		out.lockFields(part, around)
	}
	if len(out.fields) == 0 && out.others == nil {
		return nil
	}
	return out
}

// lockFields adds the fields of a value that only the administrator sets.
func (l *locked) lockFields(part cue.Value, around []token.Pos) {
	it, err := part.Fields(cue.Optional(true), cue.Patterns(true))
	for err == nil && it.Next() {
		below := lockedIn(it.Value(), around)
		if it.Selector().LabelType() != cue.StringLabel || it.Selector().ConstraintType() == cue.PatternConstraint {
			l.others = union(l.others, below)
			continue
		}
		name := it.Selector().Unquoted()
		if below = union(l.fields[name], below); below != nil {
			l.fields[name] = below
		}
	}
}

// isLocked reports whether a value is marked.
func isLocked(v cue.Value) bool {
	return slices.ContainsFunc(v.Attributes(cue.ValueAttr), func(a cue.Attribute) bool {
		marked, err := a.Flag(0, configAdmin)
		return a.Name() == configAttribute && err == nil && marked
	})
}

// maxParts bounds the number of parts of one value.
const maxParts = 100

// partsOf returns a value and what it is made of: operands of & and |, and what references
// lead to. Only they have the attributes that are written there.
func partsOf(v cue.Value) []cue.Value {
	out := []cue.Value{v}
	for i := 0; i < len(out) && len(out) < maxParts; i++ {
		op, args := out[i].Expr()
		switch op {
		case cue.AndOp, cue.OrOp, cue.NoOp:
			for _, a := range args {
				if !slices.Contains(out, a) {
					out = append(out, a)
				}
			}
		case cue.SelectorOp, cue.IndexOp:
			if to := cue.Dereference(out[i]); to.Exists() && !slices.Contains(out, to) {
				out = append(out, to)
			}
		}
	}
	return out
}

// union returns everything that is locked in one of two.
func union(a, b *locked) *locked {
	switch {
	case a == nil || b != nil && b.all:
		return b
	case b == nil || a.all:
		return a
	}
	out := &locked{position: a.position, fields: maps.Clone(a.fields), others: union(a.others, b.others)}
	for name, l := range b.fields {
		out.fields[name] = union(out.fields[name], l)
	}
	return out
}

// setBy returns the paths at which a value sets locked fields, each with the position of the
// field in the package. A value that replaces a struct or a list sets everything in it.
func (l *locked) setBy(value any, path []string) []syntax.Reference {
	if l == nil {
		return nil
	}
	members, isStruct := value.(map[string]any)
	if l.all || !isStruct {
		return []syntax.Reference{{Path: slices.Clone(path), Position: l.position}}
	}
	var out []syntax.Reference
	for _, name := range slices.Sorted(maps.Keys(members)) {
		out = append(out, cmp.Or(l.fields[name], l.others).setBy(members[name], append(path, name))...)
		if l.fields[name] != nil {
			out = append(out, l.others.setBy(members[name], append(path, name))...)
		}
	}
	return slices.CompactFunc(out, func(a, b syntax.Reference) bool { return slices.Equal(a.Path, b.Path) })
}

// lockedFaults returns the locked fields that a layer of the custom resource sets.
func (c *Config) lockedFaults(layers []Layer) fault.Faults {
	var out fault.Faults
	for _, l := range layers {
		if !l.Tenant {
			continue
		}
		for _, at := range c.locked.setBy(any(l.Values), []string{"config"}) {
			out = append(out, fault.Fault{
				Position: at.Position,
				Path:     at.String(),
				Message:  "only the administrator sets this (set by " + l.Origin + ")",
				Hint:     "take it out there",
			})
		}
	}
	return out
}

// An Attribute is an attribute in the text of the package.
type Attribute struct {
	// Name is before the parenthesis, and Contents within.
	Name, Contents string
	Position       fault.Position
}

// Attributes returns the attributes that are written in the package, by file and line.
func (s *Static) Attributes() []Attribute { return attributesIn(s.files) }

func attributesIn(files []*ast.File) []Attribute {
	var out []Attribute
	for n := range syntax.NodesIn(files...) {
		if a, ok := n.(*ast.Attribute); ok {
			name, contents := a.Split()
			out = append(out, Attribute{Name: name, Contents: contents, Position: fault.PositionAt(a.Pos())})
		}
	}
	slices.SortStableFunc(out, func(a, b Attribute) int { return fault.Compare(a.Position, b.Position) })
	return out
}
