package program

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// TypeFaults returns what is wrong with the objects of a package by the complete types of
// their kinds: each field that does not exist, that is required and not set, or whose
// value does not fit, in the line in which the author wrote it. Objects without a type
// are left alone.
//
// The objects are those of an evaluation with a session, or, for nil, of the package
// without a custom resource. A session that is made up says nothing about values: of
// those only the ones that stand in the text are judged.
//
// It compares the values by itself. CUE v0.17.1 finds no unknown field in what a
// comprehension adds to a list, and some of several faults hide others.
func (p *Program) TypeFaults(kinds *Kinds, s *Session) (out fault.Faults) {
	defer func() {
		if cause := recover(); cause != nil {
			out = append(out, fault.Fault{Message: fmt.Sprintf("with the complete Kubernetes types: the evaluator panicked: %v", cause)})
		}
	}()
	filling := map[string]any(nil)
	if s != nil {
		filling = p.filling(*s)
	}
	root := p.fill(filling)
	judge := func(component string, v cue.Value) {
		for name, object := range fields(lookup(v, "objects")) {
			kind := refOf(object)
			schema, known := kinds.Of(kind.GroupVersionKind)
			if !known || !typed(object) {
				continue
			}
			j := &typeJudge{
				kinds:   kinds,
				kind:    kind.GroupVersion().String() + " " + kind.Kind,
				depth:   len(object.Path().Selectors()),
				sampled: s != nil,
				partial: adopts(v, name),
				at:      homeOf(p.index, component, v).placeOf(object, "objects", name),
			}
			j.value(schema, object, object.Path().Selectors())
			out = append(out, withoutContent(object, j.out)...)
		}
	}
	for name, component := range fields(root.LookupPath(componentsPath)) {
		judge(name, component)
	}
	hooks := root.LookupPath(hooksPath)
	for _, phase := range Phases {
		if !hooks.Exists() {
			break
		}
		for name, hook := range fields(lookup(hooks, string(phase))) {
			judge(phase.hook(name), hook)
		}
	}
	return out
}

// adopts reports whether a component takes over an object that somebody else has made. It
// then may render a few fields of it.
func adopts(component cue.Value, object string) bool {
	policy := lookup(component, "policy", object)
	return policy.Exists() && boolAt(policy, "adopt", false)
}

// A typeJudge holds one object against the type of its kind.
type typeJudge struct {
	kinds *Kinds
	// kind is the type, and depth how many selectors lead to the object.
	kind  string
	depth int
	// sampled says that values may be made up.
	sampled bool
	// partial says that the object may be there already, so that what is required is set.
	partial bool
	// at is where the author wrote the closest thing around what is looked at.
	at  fault.Position
	out fault.Faults
}

func (j *typeJudge) report(f fault.Fault, path []cue.Selector) {
	f.Path = pathIn(path)
	j.out = append(j.out, f)
}

// value judges a value and all that is in it.
func (j *typeJudge) value(schema, v cue.Value, path []cue.Selector) {
	around := j.at
	defer func() { j.at = around }()
	if own := PositionOf(v); own.File != "" && !own.IsContract() {
		j.at = own
	}
	wanted, is := schema.IncompleteKind(), v.IncompleteKind()
	switch {
	case wanted == cue.TopKind, is == cue.BottomKind:
	case wanted&is == 0:
		j.report(fault.Fault{Position: j.at, Message: fmt.Sprintf("invalid value %s (must be %v)", shown(v), wanted)}, path)
	case is == cue.StructKind && wanted&cue.StructKind != 0:
		j.structure(schema, v, path)
	case is == cue.ListKind && wanted&cue.ListKind != 0:
		j.list(schema, v, path)
	default:
		j.scalar(schema, v, path)
	}
}

// shown returns a value as a message shows it.
func shown(v cue.Value) string {
	if value, err := data(v); err == nil {
		switch value.(type) {
		case map[string]any:
			return "{...}"
		case []any:
			return "[...]"
		}
		v, _ = v.Default()
		return fmt.Sprint(v)
	}
	return v.IncompleteKind().String()
}

// key tells the places of a type from each other: the elements of a list share one.
func (j *typeJudge) key(path []cue.Selector) string {
	names := []string{j.kind}
	for _, sel := range path[j.depth:] {
		if sel.LabelType() == cue.IndexLabel {
			names = append(names, "[]")
			continue
		}
		names = append(names, sel.String())
	}
	return strings.Join(names, " ")
}

// structure judges the fields of a struct.
func (j *typeJudge) structure(schema, v cue.Value, path []cue.Selector) {
	known := j.kinds.fields(j.key(path), schema)
	set := map[string]bool{}
	for name, field := range fields(v) {
		set[name] = true
		below := append(slices.Clip(path), cue.Str(name))
		inner, ok := known.values[name]
		if !ok {
			inner = schema.LookupPath(cue.MakePath(cue.AnyString))
		}
		switch {
		case inner.Exists():
			j.value(inner, field, below)
		case !schema.Allows(cue.Str(name)):
			at := PositionOf(field)
			if at.File == "" || at.IsContract() {
				at = j.at
			}
			j.report(fault.Fault{Code: fault.UnknownField, Position: at, Message: fault.UnknownFieldMessage, Hint: typeHint(name, known.names)}, below)
		}
	}
	if j.partial || !settledStruct(v) {
		return
	}
	for _, name := range known.required {
		if !set[name] {
			j.report(fault.Fault{Code: fault.Unset, Position: j.at, Message: fault.UnsetMessage}, append(slices.Clip(path), cue.Str(name)))
		}
	}
}

// typeHint says which field was probably meant. There are too many to list them.
func typeHint(name string, known []string) string {
	if near, ok := Nearest(name, known); ok {
		return didYouMean(near)
	}
	return "its kind has no such field"
}

// settledStruct reports whether nothing may yet add a field to a struct: no comprehension
// that is not decided, and none that looks at what is there only later.
func settledStruct(v cue.Value) bool {
	if v.Err() != nil && cue.IsIncomplete(v.Err()) {
		return false
	}
	for _, l := range structsOf(v, 3) {
		for _, e := range l.Elts {
			if c, ok := e.(*ast.Comprehension); ok && mentionsLater(c) {
				return false
			}
		}
	}
	return true
}

// structsOf returns the struct literals that a value is made of.
func structsOf(v cue.Value, depth int) []*ast.StructLit {
	var out []*ast.StructLit
	switch n := v.Source().(type) {
	case *ast.StructLit:
		return []*ast.StructLit{n}
	case *ast.Field:
		if l, ok := n.Value.(*ast.StructLit); ok {
			return []*ast.StructLit{l}
		}
	}
	if op, args := v.Expr(); op == cue.AndOp && depth > 0 {
		for _, a := range args {
			out = append(out, structsOf(a, depth-1)...)
		}
	}
	return out
}

// mentionsLater reports whether a comprehension looks at live objects or inputs.
func mentionsLater(c *ast.Comprehension) bool {
	found := false
	for _, clause := range c.Clauses {
		ast.Walk(clause, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			found = found || ok && (id.Name == "live" || id.Name == "inputs")
			return !found
		}, nil)
	}
	return found
}

// list judges the elements of a list.
func (j *typeJudge) list(schema, v cue.Value, path []cue.Selector) {
	element := schema.LookupPath(cue.MakePath(cue.AnyIndex))
	it, err := v.List()
	if err != nil || !element.Exists() {
		return
	}
	for i := 0; it.Next(); i++ {
		j.value(element, it.Value(), append(slices.Clip(path), cue.Index(i)))
	}
}

// scalar judges a value that is no struct and no list, as far as it is known.
func (j *typeJudge) scalar(schema, v cue.Value, path []cue.Selector) {
	value, err := data(v)
	if err != nil || j.sampled && !writtenOut(v, 3) {
		return
	}
	whole := schema.FillPath(cue.Path{}, value)
	for _, f := range fault.Of(whole.Validate(), whole) {
		j.report(fault.Fault{Code: f.Code, Position: j.at, Message: f.Message}, path)
		return
	}
}

// writtenOut reports whether a value stands in the text as it is.
func writtenOut(v cue.Value, depth int) bool {
	switch n := v.Source().(type) {
	case *ast.BasicLit:
		return true
	case *ast.Field:
		_, literal := n.Value.(*ast.BasicLit)
		return literal
	}
	op, args := v.Expr()
	return op == cue.AndOp && depth > 0 && slices.ContainsFunc(args, func(a cue.Value) bool { return writtenOut(a, depth-1) })
}

// pathIn returns a path as faults show it.
func pathIn(path []cue.Selector) string {
	return strings.TrimPrefix(cue.MakePath(path...).String(), ".")
}
