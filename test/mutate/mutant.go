package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A mutant is a package with one change in one place of its source.
type mutant struct {
	target   target
	file     string
	line     int
	from, to int    // the bytes of the file that the text replaces
	text     string // the replacement
	change   string // a description for people
}

// String returns the place and the change.
func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.change) }

// compare orders mutants by their place.
func (m mutant) compare(o mutant) int {
	return cmp.Or(cmp.Compare(m.file, o.file), cmp.Compare(m.line, o.line), cmp.Compare(m.change, o.change))
}

// apply returns the changed content of the file.
func (m mutant) apply(content []byte) []byte {
	return slices.Concat(content[:m.from], []byte(m.text), content[m.to:])
}

// find returns all mutants of a package.
func find(t target) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join("engine", t.name, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []mutant
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found, err := findInFile(t, name, content)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// findInFile returns the mutants of one file.
func findInFile(t target, name string, content []byte) ([]mutant, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{target: t, name: name, content: content, set: set}
	ast.Inspect(parsed, f.visit)
	return f.found, nil
}

// finder collects the mutants of one file.
type finder struct {
	target  target
	name    string
	content []byte
	set     *token.FileSet
	found   []mutant
}

// add records the mutant that has a text instead of the source between two positions.
func (f *finder) add(from, to token.Pos, text, change string) {
	at := f.set.Position(from)
	f.found = append(f.found, mutant{f.target, f.name, at.Line, at.Offset, f.set.Position(to).Offset, text, change})
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

// swaps are the operators that are replaced, each with its replacement.
var swaps = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS,
	token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.SUB: token.ADD,
}

// visit records the mutants of one node. It skips constants and types, because most of those mutants
// would not compile, or would only change a message.
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
	case *ast.CommClause:
		f.statements(n.Body)
	}
	return true
}

// condition negates the condition of an if. It leaves out conditions with an operator, which has a
// mutant of its own.
func (f *finder) condition(n *ast.IfStmt) {
	switch n.Cond.(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
		return
	}
	f.add(n.Cond.Pos(), n.Cond.Pos(), "!", "if not "+f.source(n.Cond))
}

// statements removes one statement: a call, an assignment, or an early return.
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
