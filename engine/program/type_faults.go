package program

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// TypeFaults checks the objects of a package against the complete types of their kinds. It
// returns each field that does not exist, that is required and not set, or whose value does
// not fit, with the line in which the author wrote it. It skips objects without a type.
//
// The objects are those of an evaluation with a session, or, for nil, of the package
// without a custom resource. The values of a session are made up, so that with one only
// values that are literal in the text are judged.
//
// It walks the values itself: CUE v0.17.1 finds no unknown field in what a comprehension
// adds to a list, and reports only some of several faults.
func (p *Program) TypeFaults(kinds *Kinds, s *Session) (out fault.Faults) {
	defer func() {
		if cause := recover(); cause != nil {
			out = append(out, fault.Fault{Message: fmt.Sprintf("with the complete Kubernetes types: the evaluator panicked: %v", cause)})
		}
	}()
	filling := map[string]any(nil)
	if s != nil {
		filling = p.views.filling(*s)
	}
	root := p.compiled.fill(filling)
	judge := func(component string, v cue.Value) {
		for name, object := range fields(Lookup(v, "objects")) {
			kind := refOf(object)
			schema, has := kinds.ofObject(kind.GroupVersionKind, object)
			if !has {
				continue
			}
			j := &typeJudge{
				kinds:   kinds,
				kind:    kind.GroupVersion().String() + " " + kind.Kind,
				of:      kind.GroupVersionKind,
				depth:   len(object.Path().Selectors()),
				sampled: s != nil,
				partial: adopts(v, name),
				at:      declarationOf(p.index, component, v).placeOf(object, "objects", name),
			}
			j.value(schema, object, object.Path().Selectors())
			out = append(out, withoutContent(object, j.out)...)
		}
	}
	for name, component := range fields(Lookup(root, "components")) {
		judge(name, component)
	}
	hooks := Lookup(root, "hooks")
	for _, phase := range HookPhases {
		if !hooks.Exists() {
			break
		}
		for name, hook := range fields(Lookup(hooks, string(phase))) {
			judge(phase.hook(name), hook)
		}
	}
	return out
}

// adopts reports whether a component takes over an existing object. It may then render only some
// of the object's fields.
func adopts(component cue.Value, object string) bool {
	policy := Lookup(component, "policy", object)
	return policy.Exists() && boolAt(policy, "adopt", false)
}

// A typeJudge holds one object against the type of its kind.
type typeJudge struct {
	kinds *Kinds
	// kind is the type, as a key and as it is, and depth how many selectors lead to the object.
	kind  string
	of    schema.GroupVersionKind
	depth int
	// sampled is true if values may be made up.
	sampled bool
	// partial is true if the object may exist already, with its required fields.
	partial bool
	// at is the position of the closest authored value around the current one.
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

// key returns the place of a path in a type. The elements of a list share one.
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
			j.report(fault.Fault{Code: fault.UnknownField, Position: at, Message: fault.UnknownFieldMessage, Hint: j.unknownHint(name, known.names, below)}, below)
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

// unknownHint returns which field was probably meant, or where the kind has it.
func (j *typeJudge) unknownHint(name string, known []string, path []cue.Selector) string {
	var names []string
	for _, sel := range path[j.depth:] {
		if sel.LabelType() == cue.IndexLabel {
			names = append(names, syntax.Each)
			continue
		}
		names = append(names, nameOf(sel))
	}
	if _, near := ClosestName(name, known); !near {
		if elsewhere := j.kinds.MisplacedHint(j.of, names, len(names)-1); elsewhere != "" {
			return elsewhere
		}
	}
	return typeHint(name, known)
}

// typeHint returns which field was probably meant. There are too many to list them.
func typeHint(name string, known []string) string {
	if near, ok := ClosestName(name, known); ok {
		return didYouMean(near)
	}
	return "its kind has no such field"
}

// settledStruct reports whether no comprehension may yet add a field to a struct: none is
// undecided, and none reads live objects or inputs.
func settledStruct(v cue.Value) bool {
	if v.Err() != nil && cue.IsIncomplete(v.Err()) {
		return false
	}
	for _, e := range expressionsOf(v) {
		l, _ := e.(*ast.StructLit)
		for i := 0; l != nil && i < len(l.Elts); i++ {
			if c, ok := l.Elts[i].(*ast.Comprehension); ok && mentionsLater(c) {
				return false
			}
		}
	}
	return true
}

// expressionsOf returns the expressions that a value is unified from.
func expressionsOf(v cue.Value) []ast.Node {
	todo := sourcesOf(v)
	for i := 0; i < len(todo); i++ {
		if f, ok := todo[i].(*ast.Field); ok {
			todo[i] = f.Value
		}
		if both, ok := todo[i].(*ast.BinaryExpr); ok && both.Op == token.AND {
			todo = append(todo, both.X, both.Y)
		}
	}
	return todo
}

// mentionsLater reports whether a comprehension looks at live objects or inputs.
func mentionsLater(c *ast.Comprehension) bool {
	for n := range syntax.NodesIn(c.Clauses...) {
		if id, ok := n.(*ast.Ident); ok && (id.Name == "live" || id.Name == "inputs") {
			return true
		}
	}
	return false
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

// scalar judges a value that is neither a struct nor a list, as far as it is known.
func (j *typeJudge) scalar(schema, v cue.Value, path []cue.Selector) {
	value, err := data(v)
	if err != nil || j.sampled && !writtenOut(v) {
		return
	}
	whole := schema.FillPath(cue.Path{}, value)
	for _, f := range fault.FromCUE(whole.Validate(), whole) {
		j.report(fault.Fault{Code: f.Code, Position: j.at, Message: f.Message}, path)
		return
	}
}

// writtenOut reports whether a value is literal in the text.
func writtenOut(v cue.Value) bool {
	return slices.ContainsFunc(expressionsOf(v), func(n ast.Node) bool { _, literal := n.(*ast.BasicLit); return literal })
}

// pathIn returns a path as faults show it.
func pathIn(path []cue.Selector) string {
	return strings.TrimPrefix(cue.MakePath(path...).String(), ".")
}
