package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A mutant is a change in one place of the source.
type mutant struct {
	id     int // from 1 on
	target string
	file   string
	line   int
	change string // a description for people
}

// String returns the place and the change.
func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.change) }

// compare orders mutants by their place.
func (m mutant) compare(o mutant) int {
	return cmp.Or(cmp.Compare(m.file, o.file), cmp.Compare(m.line, o.line), cmp.Compare(m.change, o.change))
}

// An edit puts a text in place of the bytes between two offsets of a file.
type edit struct {
	from, to int
	text     string
	id       int // the mutant that it is for
	closes   bool
	order    int // in which the edits were made
}

// compareEdits orders edits by their place. What ends at an offset comes before what begins there. Nodes are
// visited from the outside in, so that the last one that was visited ends first.
func compareEdits(a, b edit) int {
	side := func(e edit) int {
		if e.closes {
			return -e.order
		}
		return e.order
	}
	return cmp.Or(cmp.Compare(a.from, b.from), -compareBool(a.closes, b.closes), cmp.Compare(side(a), side(b)))
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// A file is a source file with its mutants.
type file struct {
	name    string // below the folder of the module
	path    string
	content []byte
	edits   []edit
	mutants []mutant
}

// mutate returns the content with the switches of the mutants that are not left out. No line is added,
// so that each stays on its line.
func (f *file) mutate(importing string, leftOut map[int]bool) []byte {
	var out []byte
	at := 0
	edits := slices.DeleteFunc(slices.Clone(f.edits), func(e edit) bool { return leftOut[e.id] })
	if len(edits) == 1 { // the import alone
		return f.content
	}
	slices.SortFunc(edits, compareEdits)
	for _, e := range edits {
		out = append(append(out, f.content[at:e.from]...), strings.ReplaceAll(e.text, "PATH", importing)...)
		at = e.to
	}
	return append(out, f.content[at:]...)
}

// A finder collects the mutants of one file.
type finder struct {
	file
	target string
	set    *token.FileSet
	pkg    *packages.Package
	syntax *ast.File
	lastID *int
}

// find returns the mutants of one file, numbered after lastID, which it raises.
func find(target, name string, content []byte, pkg *packages.Package, syntax *ast.File, lastID *int) *file {
	f := &finder{target: target, set: pkg.Fset, pkg: pkg, syntax: syntax, lastID: lastID}
	f.file = file{name: name, path: pkg.Fset.Position(syntax.FileStart).Filename, content: content}
	f.edit(edit{text: `; import mutant__ "PATH"`}, syntax.Name.End(), syntax.Name.End())
	ast.Inspect(syntax, f.visit)
	return &f.file
}

// edit records an edit between two positions.
func (f *finder) edit(e edit, from, to token.Pos) {
	e.from, e.to, e.order = f.set.Position(from).Offset, f.set.Position(to).Offset, len(f.edits)
	f.edits = append(f.edits, e)
}

// add records a mutant that needs texts before and after a node, which have the number of the mutant
// for a %d, and the edits of more, if it needs some in between.
func (f *finder) add(n ast.Node, before, after, change string) int {
	*f.lastID++
	id := *f.lastID
	f.mutants = append(f.mutants, mutant{id, f.target, f.name, f.set.Position(n.Pos()).Line, change})
	number := strconv.Itoa(id)
	f.edit(edit{text: strings.ReplaceAll(before, "%d", number), id: id}, n.Pos(), n.Pos())
	f.edit(edit{text: strings.ReplaceAll(after, "%d", number), id: id, closes: true}, n.End(), n.End())
	return id
}

// source returns the source of a node on one line, shortened.
func (f *finder) source(n ast.Node) string {
	text := string(f.content[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 60 {
		text = text[:57] + "..."
	}
	return text
}

// visit records the mutants of one node. It skips constants and types, because most of those mutants
// would not compile, or would only change a message.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BinaryExpr:
		f.operator(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.negation(n, "without the ! of "+f.source(n))
		}
	case *ast.IfStmt:
		f.condition(n)
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			f.negation(n, strconv.FormatBool(n.Name == "false")+" for "+n.Name)
		}
	case *ast.BasicLit:
		f.literal(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	}
	return true
}

// negation records the mutant that has the other truth value.
func (f *finder) negation(n ast.Node, change string) {
	f.add(n, "((", ") != mutant__.On(%d))", change)
}

// functions are the functions for the operators whose operands are always both evaluated.
var functions = map[token.Token]struct {
	name   string
	mutant token.Token
}{
	token.LSS: {"Less", token.LEQ}, token.LEQ: {"LessOrEqual", token.LSS},
	token.GTR: {"Greater", token.GEQ}, token.GEQ: {"GreaterOrEqual", token.GTR},
	token.SUB: {"Minus", token.ADD},
}

// operator records the mutant that has another operator: the neighbour of a comparison, and `or` for `and`.
func (f *finder) operator(n *ast.BinaryExpr) {
	change := func(to token.Token) string { return fmt.Sprintf("%s for %s in %s", to, n.Op, f.source(n)) }
	switch n.Op {
	case token.EQL:
		f.negation(n, change(token.NEQ))
	case token.NEQ:
		f.negation(n, change(token.EQL))
	case token.LAND:
		f.junction(n, change(token.LOR))
	case token.LOR:
		f.junction(n, change(token.LAND))
	default:
		function, ok := functions[n.Op]
		if !ok {
			return
		}
		id := f.add(n, "mutant__."+function.name+"(%d, ", ")", change(function.mutant))
		f.edit(edit{text: ",", id: id}, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())))
	}
}

// junction records the mutant of an && or ||. By De Morgan's laws the one is the other with all operands
// and the result negated, so that no operand has to be written twice and each is evaluated when it should.
func (f *finder) junction(n *ast.BinaryExpr, change string) {
	id := f.add(n, "((((", ") != mutant__.On(%d))) != mutant__.On(%d))", change)
	f.edit(edit{text: fmt.Sprintf(") != mutant__.On(%d))", id), id: id, closes: true}, n.X.End(), n.X.End())
	f.edit(edit{text: "((", id: id}, n.Y.Pos(), n.Y.Pos())
}

// condition negates the condition of an if. It leaves out conditions with an operator, which has a
// mutant of its own.
func (f *finder) condition(n *ast.IfStmt) {
	switch n.Cond.(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
		return
	}
	f.negation(n.Cond, "if not "+f.source(n.Cond))
}

// literal records the mutant of an integer that is one more, or of no duration that is a second: nobody writes a
// nanosecond by mistake, and no test would notice. It leaves out integers without a type, which have to be constants.
func (f *finder) literal(n *ast.BasicLit) {
	v, err := strconv.Atoi(n.Value)
	if err != nil || n.Kind != token.INT {
		return
	}
	name := types.TypeString(f.pkg.TypesInfo.TypeOf(n), f.qualifier)
	if strings.HasPrefix(name, "untyped ") {
		return
	}
	if v == 0 && types.TypeString(f.pkg.TypesInfo.TypeOf(n), nil) == "time.Duration" {
		f.add(n, "mutant__.Longer(%d, ", ")", "1s for 0")
		return
	}
	f.add(n, "mutant__.OneMore["+name+"](%d, ", ")", fmt.Sprintf("%d for %d", v+1, v))
}

// qualifier returns the name of a package in the file.
func (f *finder) qualifier(p *types.Package) string {
	if p == f.pkg.Types {
		return ""
	}
	for _, s := range f.syntax.Imports {
		if path, _ := strconv.Unquote(s.Path.Value); path == p.Path() && s.Name != nil {
			return s.Name.Name
		}
	}
	return p.Name()
}

// statements removes one statement: a call, an assignment, or an early return.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		if f.removable(s) {
			f.add(s, "if !mutant__.On(%d) { ", " }", "without "+f.source(s))
		}
	}
}

// removable reports whether a program without the statement compiles, and does something else.
func (f *finder) removable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return !ok || f.source(call.Fun) != "panic"
	case *ast.IncDecStmt, *ast.DeferStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.CONTINUE
	case *ast.AssignStmt:
		blank := !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { return f.source(e) != "_" })
		return s.Tok != token.DEFINE && !blank
	case *ast.ReturnStmt:
		return len(s.Results) == 0
	}
	return false
}
