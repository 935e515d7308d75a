package importer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/literal"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// A celWriter writes expressions of CEL as CUE.
type celWriter struct {
	// roots are what the names at the beginning of a path stand for in the package.
	roots map[string]string
	// imports are the packages of CUE that the expressions need.
	imports map[string]bool
}

// parsed returns an expression of CEL. It errors if it is none.
func parsed(text string) (ast.Expr, error) {
	p, err := parser.NewParser(parser.Macros(parser.AllMacros...), parser.EnableOptionalSyntax(true))
	if err != nil {
		return nil, err
	}
	out, problems := p.Parse(common.NewTextSource(text))
	if found := problems.GetErrors(); len(found) > 0 {
		return nil, errors.New(found[0].Message)
	}
	return out.Expr(), nil
}

// literalText returns the text that an expression is, and whether it is nothing else.
func literalText(expression string) (string, bool) {
	e, err := parsed(expression)
	if err != nil || e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, is := e.AsLiteral().(types.String)
	return string(text), is
}

// isConstant reports whether an expression depends on nothing: it refers to no name.
func isConstant(expression string) bool {
	e, err := parsed(expression)
	if err != nil {
		return false
	}
	constant := true
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) { constant = constant && e.Kind() != ast.IdentKind }))
	return constant
}

// expression returns an expression as CUE. It errors with what has no counterpart.
func (w *celWriter) expression(text string) (string, error) {
	e, err := parsed(text)
	if err != nil {
		return "", err
	}
	return w.write(e)
}

// write returns a node as CUE.
func (w *celWriter) write(e ast.Expr) (string, error) {
	switch e.Kind() {
	case ast.LiteralKind:
		return w.literal(e)
	case ast.IdentKind:
		if root, known := w.roots[e.AsIdent()]; known {
			return root, nil
		}
		return "", fmt.Errorf("%s is neither schema nor a resource", e.AsIdent())
	case ast.SelectKind:
		s := e.AsSelect()
		of, err := w.write(s.Operand())
		if err == nil && s.IsTestOnly() {
			return "(" + selected(of, s.FieldName()) + " != _|_)", nil
		}
		return selected(of, s.FieldName()), err
	case ast.ListKind:
		elements, err := w.all(e.AsList().Elements())
		return "[" + strings.Join(elements, ", ") + "]", err
	case ast.CallKind:
		return w.call(e.AsCall())
	case ast.MapKind, ast.StructKind, ast.ComprehensionKind, ast.UnspecifiedExprKind:
	}
	return "", errors.New("maps, and loops such as all and map, have to be written by hand")
}

// selected returns the selection of a field.
func selected(of, field string) string { return of + "." + label(field) }

// literal returns a constant.
func (w *celWriter) literal(e ast.Expr) (string, error) {
	switch v := e.AsLiteral().(type) {
	case types.String:
		return literal.String.Quote(string(v)), nil
	case types.Bool, types.Int, types.Double, types.Uint:
		return fmt.Sprint(v.Value()), nil
	case types.Null:
		return "null", nil
	}
	return "", fmt.Errorf("%v has no counterpart", e.AsLiteral())
}

func (w *celWriter) all(of []ast.Expr) ([]string, error) {
	var out []string
	for _, e := range of {
		text, err := w.write(e)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// infix are the operators that CUE has, too, by the names of CEL. Division is not: CEL has that of integers.
var infix = map[string]string{
	operators.Add: "+", operators.Subtract: "-", operators.Multiply: "*", operators.Equals: "==", operators.NotEquals: "!=", operators.Less: "<",
	operators.LessEquals: "<=", operators.Greater: ">", operators.GreaterEquals: ">=", operators.LogicalAnd: "&&", operators.LogicalOr: "||",
}

// functions are those that CUE has, too, with their number of arguments; the receiver is the first one.
var functions = map[string]struct {
	name      string
	arguments int
}{
	"size": {"len", 1}, "startsWith": {"strings.HasPrefix", 2}, "endsWith": {"strings.HasSuffix", 2}, "contains": {"strings.Contains", 2},
	"lowerAscii": {"strings.ToLower", 1}, "upperAscii": {"strings.ToUpper", 1}, "trim": {"strings.TrimSpace", 1}, "split": {"strings.Split", 2},
	"join": {"strings.Join", 2}, "replace": {"strings.Replace", 3}, "int": {"strconv.Atoi", 1},
}

// call returns an operator or a function.
func (w *celWriter) call(c ast.CallExpr) (string, error) {
	of := slices.Clone(c.Args())
	if c.IsMemberFunction() {
		of = append([]ast.Expr{c.Target()}, of...)
	}
	if c.FunctionName() == operators.OptSelect {
		return w.optional(of)
	}
	arguments, err := w.all(of)
	if err != nil {
		return "", err
	}
	name, n := c.FunctionName(), len(arguments)
	switch {
	case infix[name] != "" && n == 2:
		return "(" + arguments[0] + " " + infix[name] + " " + arguments[1] + ")", nil
	case name == operators.LogicalNot && n == 1:
		return "!" + arguments[0], nil
	case name == operators.Negate && n == 1:
		return "-" + arguments[0], nil
	case name == operators.Conditional && n == 3:
		return fmt.Sprintf("[if %s {%s}, %s][0]", arguments[0], arguments[1], arguments[2]), nil
	case name == operators.Index && n == 2:
		return arguments[0] + "[" + arguments[1] + "]", nil
	case name == operators.In && n == 2:
		w.imports["list"] = true
		return "list.Contains(" + arguments[1] + ", " + arguments[0] + ")", nil
	case name == "string" && n == 1:
		return `"\(` + arguments[0] + `)"`, nil
	case name == "matches" && n == 2:
		return "(" + arguments[0] + " =~ " + arguments[1] + ")", nil
	case name == "orValue" && n == 2:
		return "(*" + arguments[0] + " | " + arguments[1] + ")", nil
	}
	if f, known := functions[name]; known && f.arguments == n {
		return w.function(f.name, arguments), nil
	}
	return "", fmt.Errorf("%s has to be written by hand", strings.Trim(name, "_"))
}

// function returns the call of a function of CUE.
func (w *celWriter) function(name string, arguments []string) string {
	if pkg, _, isPackage := strings.Cut(name, "."); isPackage {
		w.imports[pkg] = true
	}
	if name == "strings.Replace" {
		arguments = append(arguments, strconv.Itoa(-1))
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// optional returns the selection of a field that may not be there; orValue says what stands for it then.
func (w *celWriter) optional(of []ast.Expr) (string, error) {
	from, err := w.write(of[0])
	if err != nil {
		return "", err
	}
	field, ok := of[1].AsLiteral().(types.String)
	if !ok {
		return "", errors.New("an optional field has to have a name")
	}
	return selected(from, string(field)), nil
}
