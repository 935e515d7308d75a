package compile

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// structure translates a struct. Hidden fields and definitions are no part of it, but what is wrong in one makes the
// struct wrong.
func (t *translator) structure(v cue.Value) (*template.Node, error) {
	v, err := t.chosen(v)
	if err != nil {
		return nil, err
	}
	it, err := v.Fields(cue.Concrete(true))
	if err != nil || v.Err() != nil && !cue.IsIncomplete(v.Err()) {
		return nil, t.undecided(v, err)
	}
	var keys []string
	var nodes []*template.Node
	for it.Next() {
		n, err := t.member(it.Value())
		if err != nil {
			return nil, err
		}
		keys, nodes = append(keys, it.Selector().Unquoted()), append(nodes, n)
	}
	if err := t.guardHidden(v); err != nil {
		return nil, err
	}
	return template.Object(keys, nodes), nil
}

// list translates a list.
func (t *translator) list(v cue.Value) (*template.Node, error) {
	v, err := t.chosen(v)
	if err != nil {
		return nil, err
	}
	it, err := v.List()
	if err != nil {
		return nil, t.undecided(v, err)
	}
	var nodes []*template.Node
	for it.Next() {
		n, err := t.member(it.Value())
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return template.List(nodes), nil
}

// member translates a part of a struct or a list, as an object has it: bytes in base64, and 3.0 as 3. A
// function gets numbers as they are.
func (t *translator) member(v cue.Value) (*template.Node, error) {
	n, err := t.node(v)
	if err != nil {
		return nil, err
	}
	if t.arguments == 0 && n.MayBeDecimal() {
		return template.Call("number", n)
	}
	if v.IncompleteKind() == cue.BytesKind {
		return template.Call("base64.Encode", template.Constant(nil), n)
	}
	return n, nil
}

// counting are the functions that only ask how many fields or elements there are, which is the
// same in all of a shape.
var counting = []string{"struct.MaxFields", "struct.MinFields", "list.MaxItems", "list.MinItems", "close"}

// chosen returns a struct or list of which no hole decides which one it is, and that no function
// checks by the values in it.
func (t *translator) chosen(v cue.Value) (cue.Value, error) {
	if !t.rests(v) {
		v, _ = v.Default()
		return v, nil
	}
	op, args := v.Expr()
	switch op {
	case cue.OrOp:
		if len(args) == 2 && isDefaulted(v) {
			return t.chosen(args[0])
		}
		return v, t.fail(v, "the values decide which of several it is")
	case cue.CallOp:
		if !slices.Contains(counting, function(args[0])) && v.Kind() == cue.BottomKind {
			return v, t.fail(v, "there is no translation of %s", function(args[0]))
		}
	case cue.AndOp:
		for _, arg := range args {
			if err := t.checksValues(arg); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// checksValues errors if an operand of a unification may depend on the values in a struct or a list.
func (t *translator) checksValues(v cue.Value) error {
	op, args := v.Expr()
	switch op {
	case cue.OrOp:
		return t.fail(v, "the values decide which of several it is")
	case cue.CallOp:
		if !slices.Contains(counting, function(args[0])) {
			return t.fail(v, "there is no translation of %s", function(args[0]))
		}
	case cue.AndOp:
		for _, arg := range args {
			if err := t.checksValues(arg); err != nil {
				return err
			}
		}
	case cue.SelectorOp:
		if to, ok := follow(v); ok {
			return t.checksValues(to)
		}
	}
	return nil
}

// isDefaulted reports whether a value is written as *a | b.
func isDefaulted(v cue.Value) bool {
	e, ok := unwrapped(program.ExpressionOf(v)).(*ast.BinaryExpr)
	if !ok || e.Op != token.OR {
		return false
	}
	first, ok := e.X.(*ast.UnaryExpr)
	second, isBinary := unwrapped(e.Y).(*ast.BinaryExpr)
	return ok && first.Op == token.MUL && (!isBinary || second.Op != token.OR)
}

// undecided returns the error for a struct or a list whose form rests on holes. CUE says where the
// references are.
func (t *translator) undecided(v cue.Value, err error) error {
	out := untranslatedf(v.Path().String(), "values decide about its form")
	out.Position = posOf(v)
	for _, f := range slices.Concat(fault.FromCUE(err, v), fault.FromCUE(v.Err(), v)) {
		out.Position = f.Position
		for _, r := range t.index.References() {
			if r.Position == f.Position {
				out.paths = append(out.paths, t.matching(r.Path)...)
			}
		}
	}
	if len(out.paths) == 0 {
		out.paths = t.restsOn(v)
	}
	return out
}

// guardValue adds a guard that something has a value at all.
func (t *translator) guardValue(v cue.Value, n *template.Node) error {
	if _, static := n.Static(); static {
		return nil
	}
	length, err := template.Call("len", template.List([]*template.Node{n}))
	if err != nil {
		return t.fail(v, "%v", err)
	}
	return t.guardEqual(v, length, template.Constant(int64(1)))
}

// partial guards what is complete of something that is not. Scalars are guarded by a function.
func (t *translator) partial(v cue.Value, guard func(cue.Value) error) error {
	if !t.rests(v) {
		return nil
	}
	kind := v.IncompleteKind()
	if kind != cue.StructKind && kind != cue.ListKind {
		return guard(v)
	}
	if kind == cue.StructKind {
		if _, err := v.Fields(cue.Concrete(true)); err != nil {
			return t.undecided(v, err)
		}
	}
	members, ok := membersOf(v)
	if !ok {
		return t.undecided(v, v.Err())
	}
	for _, member := range members {
		if err := t.partial(member, guard); err != nil {
			return err
		}
	}
	return nil
}

// guardComplete guards that a scalar has a value.
func (t *translator) guardComplete(v cue.Value) error {
	if !t.rests(v) {
		return nil
	}
	n, err := t.node(v)
	if err != nil {
		return err
	}
	return t.guardValue(v, n)
}
