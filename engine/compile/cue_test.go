package compile

import (
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"

	"operetta.dev/engine/template"
)

// A holed value is a value of CUE into which a type was filled in the place of a text and of an integer.
type holed struct {
	cue.Value

	*holes
}

// at returns a value of it.
func (h holed) get(path string) cue.Value { return h.LookupPath(cue.ParsePath(path)) }

// expr returns the operator of a value, and the number of its operands.
func (h holed) expr(path string) (cue.Op, int) {
	op, args := h.get(path).Expr()
	return op, len(args)
}

// is reports whether the source of a value is the syntax of a hole.
func (h holed) is(v cue.Value, hole string) bool {
	path := h.at[v.Source()]
	return len(path) == 2 && path[1] == hole
}

// holedValue compiles a text, and fills holes into cr.text and cr.number.
func holedValue(text string) holed {
	ctx := cuecontext.New()
	holes := newHoles()
	data := map[string]any{"text": "x", "number": int64(1)}
	filling := &ast.StructLit{Elts: []ast.Decl{&ast.Field{Label: ast.NewIdent("cr"), Value: holes.syntax(data, data, template.Pins{}, []string{"cr"})}}}
	return holed{ctx.CompileString(text).FillPath(cue.Path{}, ctx.BuildExpr(filling)), holes}
}

// facts are what this package takes for granted of CUE, or works around. A row that fails after an upgrade of CUE says which
// piece of it to look at again. Record 101 has them in words.
var facts = map[string]struct {
	reason string
	text   string
	holds  func(h holed) bool
}{
	"the source of a value is the very syntax that was filled in": {
		"how the translator knows a hole",
		`cr: {...}`,
		func(h holed) bool { return h.is(h.get("cr.text"), "text") && h.is(h.get("cr.number"), "number") },
	},
	"a reference can be followed to what it leads to": {
		"how the translator follows selectors",
		`cr: {...}, x: cr.text, y: x`,
		func(h holed) bool {
			return h.is(cue.Dereference(h.get("x")), "text") && h.is(cue.Dereference(cue.Dereference(h.get("y"))), "text")
		},
	},
	"a let is resolved when it is looked at": {
		"why lets are hidden fields in the open form of a package",
		`cr: {...}, let t = cr.text, x: t`,
		func(h holed) bool { op, _ := h.expr("x"); return op == cue.NoOp },
	},
	"several conjuncts are a conjunction": {
		"how guards are found",
		`cr: {...}, x: cr.number & >1 & <9`,
		func(h holed) bool { op, n := h.expr("x"); return op == cue.AndOp && n >= 2 },
	},
	"a default that is as wide as what it stands beside is dropped": {
		"why a disjunction is compared with its text",
		`cr: {...}, x: *cr.text | string`,
		func(h holed) bool { op, _ := h.expr("x"); return op == cue.NoOp },
	},
	"a disjunction does not tell its default": {
		"why a default goes by the text",
		`x: *"a" | "b"`,
		func(h holed) bool {
			_, args := h.get("x").Expr()
			for _, a := range args {
				if op, _ := a.Expr(); op != cue.NoOp {
					return false
				}
			}
			return len(args) == 2
		},
	},
	"the function of a call tells the package that it is of": {
		"how functions are known, whatever a package is called in the file",
		"import s \"strings\"\ncr: {...}, x: s.ToUpper(cr.text)",
		func(h holed) bool {
			op, args := h.get("x").Expr()
			if op != cue.CallOp || len(args) != 2 {
				return false
			}
			f, ok := args[0].Source().(*ast.SelectorExpr)
			if !ok {
				return false
			}
			of, ok := f.X.(*ast.Ident)
			if !ok {
				return false
			}
			spec, ok := of.Node.(*ast.ImportSpec)
			return ok && spec.Path.Value == `"strings"`
		},
	},
	"an interpolation is texts and values in turn": {
		"how it is translated",
		`cr: {...}, x: "a\(cr.text)b\(cr.number)"`,
		func(h holed) bool {
			op, args := h.get("x").Expr()
			return op == cue.InterpolationOp && len(args) == 5
		},
	},
	"a value that is known keeps its expression": {
		"why a constant goes by what it rests on, and not by whether it is known",
		`x: 1 + 2`,
		func(h holed) bool { op, n := h.expr("x"); return op == cue.AddOp && n == 2 },
	},
	"so does an error": {
		"how what is decided by an error is found",
		`x: 1 / 0`,
		func(h holed) bool { op, n := h.expr("x"); return op == cue.FloatQuotientOp && n == 2 },
	},
	"fields that a hole decides about are reported": {
		"how values that decide about the form are found",
		`cr: {...}, x: {if cr.number > 3 {a: 1}}`,
		func(h holed) bool { _, err := h.get("x").Fields(cue.Concrete(true)); return err != nil },
	},
	"elements that a hole decides about are not": {
		"why lists are looked at by their text",
		`cr: {...}, x: y: [for e in [1, 2] if e > cr.number {e}]`,
		func(h holed) bool { _, err := h.get("x").Fields(cue.Concrete(true)); return err == nil },
	},
	"nor is a comparison of a hole with bottom, which is decided": {
		"why presence is read from a tree of true",
		`cr: {...}, x: {if cr.text != _|_ {a: 1}, b: 2}`,
		func(h holed) bool {
			_, err := h.get("x").Fields(cue.Concrete(true))
			return err == nil && !h.get("x.a").Exists() && h.get("x.b").Exists()
		},
	},
	"a disjunction with a default is not known, and operands use the default": {
		"why a constant is evaluated before it is asked whether it is known",
		`x: *1 | int, y: x + 1`,
		func(h holed) bool {
			n, err := h.get("y").Int64()
			return !h.get("x").IsConcrete() && err == nil && n == 2
		},
	},
}

func TestCUEIsWhatIsReliedUpon(t *testing.T) {
	t.Parallel()
	for name, fact := range facts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := holedValue(fact.text)
			if !fact.holds(h) {
				t.Errorf("no longer so: %s\n%#v\n%v", fact.reason, h.Value, h.Validate())
			}
		})
	}
}
