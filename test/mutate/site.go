package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A site is one change of one place of the source.
type site struct {
	subject  subject
	file     string
	line     int
	from, to int // bytes of the file that text takes the place of
	text     string
	what     string
}

func (s site) String() string { return fmt.Sprintf("%s:%d: %s", s.file, s.line, s.what) }

func (s site) compare(o site) int {
	return cmp.Or(cmp.Compare(s.file, o.file), cmp.Compare(s.line, o.line), cmp.Compare(s.what, o.what))
}

// find returns the changes that can be made to a package.
func find(s subject) ([]site, error) {
	files, err := filepath.Glob(filepath.Join("engine", s.name, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []site
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, content, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		f := &finder{subject: s, name: name, content: content, set: set}
		ast.Inspect(parsed, f.visit)
		out = append(out, f.found...)
	}
	return out, nil
}

// finder collects the changes of one file.
type finder struct {
	subject subject
	name    string
	content []byte
	set     *token.FileSet
	found   []site
}

// add records a change of what is between two positions.
func (f *finder) add(from, to token.Pos, text, what string) {
	at := f.set.Position(from)
	f.found = append(f.found, site{f.subject, f.name, at.Line, at.Offset, f.set.Position(to).Offset, text, what})
}

// source returns what is written at a node, on one line and cut.
func (f *finder) source(n ast.Node) string {
	text := string(f.content[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 60 {
		text = text[:57] + "..."
	}
	return text
}

// swaps are operators and what a slip makes of them.
var swaps = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS,
	token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.SUB: token.ADD,
}

// visit records the changes of one node. Constants and types have none, as most of those
// would not compile, or change a text.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BinaryExpr:
		if to, ok := swaps[n.Op]; ok {
			f.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String(), fmt.Sprintf("%s for %s in %s", to, n.Op, f.source(n)))
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n.OpPos, n.OpPos+1, "", "without the ! of "+f.source(n))
		}
	case *ast.IfStmt:
		f.condition(n)
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			other := strconv.FormatBool(n.Name == "false")
			f.add(n.Pos(), n.End(), other, other+" for "+n.Name)
		}
	case *ast.BasicLit:
		if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
			f.add(n.Pos(), n.End(), strconv.Itoa(v+1), fmt.Sprintf("%d for %d", v+1, v))
		}
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	}
	return true
}

// condition turns the condition of an if around, where no operator of its own does that.
func (f *finder) condition(n *ast.IfStmt) {
	switch n.Cond.(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
		return
	}
	f.add(n.Cond.Pos(), n.Cond.Pos(), "!", "if not "+f.source(n.Cond))
}

// statements leaves one statement out: a call, an assignment, or an early end.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt, *ast.DeferStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ReturnStmt:
			if len(s.Results) > 0 {
				continue
			}
		default:
			continue
		}
		f.add(s.Pos(), s.End(), "", "without "+f.source(s))
	}
}
