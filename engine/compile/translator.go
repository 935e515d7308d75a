package compile

import (
	"encoding/json"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// A translator turns the values of a package with holes into nodes.
type translator struct {
	*holes
	// root is the package with the holes.
	root  cue.Value
	index *syntax.Index
	// guards are what has to hold for the nodes to be right, and guarded has them as text.
	guards  []*template.Node
	guarded map[string]bool
	depth   int
	// arguments is how many calls there are around the value that is translated.
	arguments int
}

func newTranslator(h *holes, root cue.Value, x *syntax.Index) *translator {
	return &translator{holes: h, root: root, index: x, guarded: map[string]bool{}}
}

// An untranslated is the error for a value that has no node, with the holes whose values would have to be
// pinned.
type untranslated struct {
	Reason
	paths [][]string
}

// Error says what was not translated.
func (e *untranslated) Error() string { return e.Path + ": " + e.Message }

// fail returns the error for a value that has no node.
func (t *translator) fail(v cue.Value, format string, args ...any) error {
	out := untranslatedf(v.Path().String(), format, args...)
	out.Position, out.paths = posOf(v), t.restsOn(v)
	return out
}

// guard adds a condition for the nodes to be right.
func (t *translator) guard(n *template.Node) {
	if v, static := n.Static(); static && v == true {
		return
	}
	text, err := json.Marshal(n)
	if err == nil && !t.guarded[string(text)] {
		t.guarded[string(text)] = true
		t.guards = append(t.guards, n)
	}
}

// guardsOf returns the guards that a translation adds, apart from those of others.
func guardsOf(t *translator, translate func() error) ([]*template.Node, error) {
	guards, guarded := t.guards, t.guarded
	t.guards, t.guarded = nil, map[string]bool{}
	defer func() { t.guards, t.guarded = guards, guarded }()
	err := translate()
	return t.guards, err
}

// guardEqual adds a guard that two nodes are equal.
func (t *translator) guardEqual(v cue.Value, a, b *template.Node) error {
	n, err := template.Call("==", a, b)
	if err != nil {
		return t.fail(v, "%v", err)
	}
	t.guard(n)
	return nil
}

// maxNesting bounds how deep expressions may refer to others.
const maxNesting = 100

// node translates a value, of any kind.
func (t *translator) node(v cue.Value) (*template.Node, error) {
	if t.depth++; t.depth > maxNesting {
		return nil, t.fail(v, "it is nested too deep")
	}
	defer func() { t.depth-- }()
	switch v.IncompleteKind() {
	case cue.StructKind:
		return t.structure(v)
	case cue.ListKind:
		return t.list(v)
	}
	if !t.rests(v) {
		return t.constant(v)
	}
	return t.scalar(v)
}

// constant returns a scalar that rests on no hole.
func (t *translator) constant(v cue.Value) (*template.Node, error) {
	v, _ = v.Default()
	switch v.Kind() {
	case cue.StringKind:
		s, err := v.String()
		return template.Constant(s), err
	case cue.BoolKind:
		b, err := v.Bool()
		return template.Constant(b), err
	case cue.IntKind:
		if i, err := v.Int64(); err == nil {
			return template.Constant(i), nil
		}
	case cue.FloatKind:
		if d, err := v.Decimal(); err == nil {
			return template.Constant(d), nil
		}
	case cue.BytesKind:
		b, err := v.Bytes()
		return template.Constant(b), err
	case cue.NullKind:
		return template.Constant(nil), nil
	}
	return nil, t.fail(v, "it is no value: %v", v)
}

// binary are the operators that have the same name as a node.
var binary = map[cue.Op]bool{
	cue.AddOp: true, cue.SubtractOp: true, cue.MultiplyOp: true, cue.EqualOp: true, cue.NotEqualOp: true, cue.LessThanOp: true,
	cue.LessThanEqualOp: true, cue.GreaterThanOp: true, cue.GreaterThanEqualOp: true, cue.BooleanAndOp: true, cue.BooleanOrOp: true,
	cue.RegexMatchOp: true, cue.NotRegexMatchOp: true, cue.FloatQuotientOp: true,
}

// scalar translates a scalar that rests on holes.
func (t *translator) scalar(v cue.Value) (*template.Node, error) {
	op, args := v.Expr()
	if op != cue.AndOp {
		if path, ok := t.at[v.Source()]; ok {
			return template.Reference(path...), nil
		}
	}
	switch op {
	case cue.NoOp:
		return t.plain(v, args)
	case cue.AndOp:
		return t.unified(v, args)
	case cue.SelectorOp, cue.IndexOp:
		if to, ok := follow(v); ok {
			return t.node(to)
		}
		if op == cue.IndexOp && len(args) == 2 && t.rests(v) {
			return t.operation(v, "index", args)
		}
		return t.written(v)
	case cue.OrOp:
		if len(args) != 2 || !isDefaulted(v) {
			return nil, t.fail(v, "the values decide which of several it is")
		}
		return t.node(args[0]) // whether there is an a in *a | b is the same in all of a shape
	case cue.InterpolationOp:
		return t.interpolation(v, args)
	case cue.CallOp:
		return t.call(v, args)
	case cue.NotOp:
		if len(args) == 1 {
			return t.operation(v, "!", args)
		}
	}
	if op == cue.SubtractOp && len(args) == 1 {
		return t.operation(v, "negate", args)
	}
	if binary[op] && len(args) == 2 {
		return t.operation(v, op.String(), args)
	}
	return nil, t.fail(v, "there is no translation of %v", op)
}

// follow returns what a reference leads to. What is embedded, as in {x.y}, CUE does not dereference.
func follow(v cue.Value) (to cue.Value, ok bool) {
	op, args := v.Expr()
	to = cue.Dereference(v)
	failed := op == cue.IndexOp && to.IncompleteKind() == cue.BottomKind // an index that is a hole
	if to.Exists() && (to.Source() != v.Source() && !failed || to.Path().String() != v.Path().String()) {
		return to, true
	}
	if len(args) != 2 {
		return v, false
	}
	if name, err := args[1].String(); err == nil {
		to = args[0].LookupPath(cue.MakePath(syntax.Selector(name)))
	} else if i, err := args[1].Int64(); err == nil && i >= 0 {
		to = args[0].LookupPath(cue.MakePath(cue.Index(i)))
	} else if failed {
		return v, false
	}
	return to, to.Exists()
}

// plain translates a value that is no operation, such as one in braces.
func (t *translator) plain(v cue.Value, args []cue.Value) (*template.Node, error) {
	if len(args) == 1 && args[0].Source() != v.Source() && (!isDisjunction(v) || t.lacksDefault(v)) {
		return t.node(args[0])
	}
	return t.written(v)
}

// lacksDefault reports whether a value is written as *a | b, and a is not there.
func (t *translator) lacksDefault(v cue.Value) bool {
	if !isDefaulted(v) {
		return false
	}
	e, _ := unwrapped(program.ExpressionOf(v)).(*ast.BinaryExpr)
	marked, _ := e.X.(*ast.UnaryExpr)
	path, ok := t.index.PathOf(marked.X)
	return ok && !program.Lookup(t.root, path...).Exists()
}

// written translates a chain in the text. What a let stands for CUE does not tell: its reference is
// resolved when it is looked at.
func (t *translator) written(v cue.Value) (*template.Node, error) {
	if path, ok := t.writtenHole(v); ok {
		return template.Reference(path...), nil
	}
	return nil, t.fail(v, "it is a type and no value: %v", v)
}

func (t *translator) writtenHole(v cue.Value) ([]string, bool) {
	e := unwrapped(program.ExpressionOf(v))
	if e == nil {
		return nil, false
	}
	path, ok := t.index.PathOf(e)
	if !ok {
		return nil, false
	}
	path, ok = t.paths[strings.Join(path, separator)]
	return path, ok
}

// unwrapped returns an expression without parentheses, and without braces around one embedding.
func unwrapped(e ast.Expr) ast.Expr {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
			continue
		case *ast.StructLit:
			if len(x.Elts) == 1 {
				if embedded, ok := x.Elts[0].(*ast.EmbedDecl); ok {
					e = embedded.Expr
					continue
				}
			}
		}
		return e
	}
}

func isDisjunction(v cue.Value) bool {
	e, ok := unwrapped(program.ExpressionOf(v)).(*ast.BinaryExpr)
	return ok && e.Op == token.OR
}

// operation translates a call of an operator or a function.
func (t *translator) operation(v cue.Value, name string, args []cue.Value) (*template.Node, error) {
	t.arguments++
	defer func() { t.arguments-- }()
	nodes := make([]*template.Node, len(args))
	for i, arg := range args {
		n, err := t.node(arg)
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	n, err := template.Call(name, nodes...)
	if err != nil {
		return nil, t.fail(v, "%v", err)
	}
	return n, nil
}
