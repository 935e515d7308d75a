package syntax

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// The text of a package is divided into blocks: one for each component and each field of the status with a literal
// name, one for each other field and let of the root, and one for everything else. A part of a rollout rests on its
// own block, on the last one, and on those that any of them mentions by name.

// Frame is the part of a rollout that is neither a component nor a field of the status: the inputs, the hooks, and which
// components there are.
const Frame = ""

// ComponentPart returns the name of the part for a component.
func ComponentPart(name string) string { return "components." + name }

// StatusPart returns the name of the part for a field of the status.
func StatusPart(name string) string { return "status." + name }

// Parts are the parts of a package whose values rest on less than everything that the package reads. It is
// immutable.
type Parts struct {
	// readings are what each part reads.
	readings map[string][]Reading
	// related is true if the schema of the resource relates fields to each other.
	related bool
}

// Names returns the parts, sorted. There are none if the text does not show what each rests on.
func (p *Parts) Names() []string { return slices.Sorted(maps.Keys(p.readings)) }

// Readings returns what a part reads.
func (p *Parts) Readings(part string) []Reading { return p.readings[part] }

// RelatesFields reports whether the schema of the resource relates fields to each other, so that whoever reads one of them
// depends on others.
func (p *Parts) RelatesFields() bool { return p.related }

// PartsOf returns the parts of a package.
func PartsOf(x *Index) *Parts { return &x.parts }

// rest is the block of the text that is in no other one.
const rest = ""

// blocks are the blocks of a package.
type blocks struct {
	index *reader
	// of has the block of each node.
	of map[ast.Node]string
	// mentions has the blocks that are named in each.
	mentions map[string]map[string]bool
	// related are the blocks with fields that depend on others beside them.
	related map[string]bool
	// indivisible is true if a name leads into another block in a way that is not followed.
	indivisible bool
}

// partsOf returns the parts of a package that has been read, by all its references.
func (x *reader) partsOf(all []found) Parts {
	b := &blocks{index: x, of: map[ast.Node]string{}, mentions: map[string]map[string]bool{}, related: map[string]bool{}}
	if x.foreign || x.opaque {
		return Parts{}
	}
	for _, f := range x.files {
		b.root(f.Decls, false)
	}
	b.lookAround()
	readings := map[string][]Reading{}
	for _, f := range all {
		block, known := b.of[f.chain.root()]
		b.indivisible = b.indivisible || !known
		readings[block] = append(readings[block], x.readingsOf([]found{f})...)
	}
	if b.indivisible {
		return Parts{}
	}
	out := Parts{readings: map[string][]Reading{}, related: b.relatesFields()}
	for block := range b.mentions {
		if isPart(block) {
			for _, of := range b.closure(block) {
				out.readings[block] = append(out.readings[block], readings[of]...)
			}
		}
	}
	for _, of := range b.frame() {
		out.readings[Frame] = append(out.readings[Frame], readings[of]...)
	}
	return out
}

// isPart reports whether a block is that of a component or of a field of the status.
func isPart(block string) bool {
	return strings.HasPrefix(block, ComponentPart("")) || strings.HasPrefix(block, StatusPart(""))
}

// divided are the fields of the root whose members have blocks of their own.
var divided = []string{"components", "status"}

// root divides declarations at the root. What is there under a condition depends on that.
func (b *blocks) root(decls []ast.Decl, conditional bool) {
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.Comprehension:
			for _, c := range d.Clauses {
				b.add(rest, c)
			}
			if s, ok := d.Value.(*ast.StructLit); ok && d.Fallback == nil {
				b.root(s.Elts, true)
				continue
			}
			b.add(rest, d.Value)
			if d.Fallback != nil {
				b.add(rest, d.Fallback)
			}
		case *ast.LetClause:
			b.add(d.Ident.Name, d)
		case *ast.Field:
			name, literal := literalLabel(d.Label)
			switch {
			case !literal || hasAlias(d):
				b.add(rest, d)
			case slices.Contains(divided, name):
				b.members(name, d.Value)
			default:
				b.add(name, d)
				b.related[name] = b.related[name] || conditional
			}
		case *ast.ImportDecl, *ast.Package, *ast.CommentGroup:
		default:
			b.add(rest, d)
		}
	}
}

// members divides the value of a field of the root.
func (b *blocks) members(of string, v ast.Expr) {
	switch v := v.(type) {
	case *ast.ParenExpr:
		b.members(of, v.X)
	case *ast.BinaryExpr:
		if v.Op != token.AND {
			b.add(rest, v)
			return
		}
		b.members(of, v.X)
		b.members(of, v.Y)
	case *ast.StructLit:
		for _, d := range v.Elts {
			b.member(of, d)
		}
	default:
		b.add(rest, v)
	}
}

// member divides a declaration in the value of a field of the root.
func (b *blocks) member(of string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.Field:
		if name, literal := literalLabel(d.Label); literal && isRegular(name) && !hasAlias(d) {
			b.add(of+"."+name, d)
			return
		}
	case *ast.Comprehension:
		if s, ok := d.Value.(*ast.StructLit); ok && d.Fallback == nil {
			for _, c := range d.Clauses {
				b.add(rest, c)
			}
			b.members(of, s)
			return
		}
	}
	b.add(rest, d)
}

// add notes that a node, and all that is in it, is in a block.
func (b *blocks) add(block string, n ast.Node) {
	if b.mentions[block] == nil {
		b.mentions[block] = map[string]bool{}
	}
	ast.Walk(n, func(n ast.Node) bool {
		b.of[n] = block
		return true
	}, nil)
}

// lookAround notes which blocks each block mentions.
func (b *blocks) lookAround() {
	for _, f := range b.index.files {
		b.walk(f)
	}
}

func (b *blocks) walk(n ast.Node) {
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportDecl, *ast.Package:
			return false
		case *ast.Field:
			if name, literal := literalLabel(n.Label); literal {
				if !isRegular(name) {
					b.mention(b.of[n], name) // it may be the parameter of a definition of that name
				}
				b.walk(n.Value)
				return false
			}
		case *ast.Comprehension:
			b.related[b.of[n]] = true
		case *ast.BinaryExpr:
			if n.Op == token.OR && (!isSimple(n.X) || !isSimple(n.Y)) {
				b.related[b.of[n]] = true
			}
		case ast.Expr:
			c, ok := asChain(n)
			if !ok {
				return true
			}
			b.chain(c)
			return false
		}
		return true
	}, nil)
}

// isSimple reports whether an alternative says nothing about several fields at once.
func isSimple(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit, *ast.BottomLit:
		return true
	case *ast.ParenExpr:
		return isSimple(e.X)
	case *ast.UnaryExpr:
		return isSimple(e.X)
	case *ast.BinaryExpr:
		return isSimple(e.X) && isSimple(e.Y)
	case *ast.Ident:
		return isPredeclared(e)
	case *ast.SelectorExpr:
		return isBuiltin(e.X)
	case *ast.CallExpr:
		return isSimple(e.Fun) && !slices.ContainsFunc(e.Args, func(e ast.Expr) bool { return !isSimple(e) })
	case *ast.ListLit:
		return !slices.ContainsFunc(e.Elts, func(e ast.Expr) bool {
			if more, ok := e.(*ast.Ellipsis); ok {
				e = more.Type
			}
			return e != nil && !isSimple(e)
		})
	case *ast.StructLit:
		return isEmpty(e)
	}
	return false
}

// isBuiltin reports whether an expression is the name of a package of CUE itself.
func isBuiltin(e ast.Expr) bool {
	path := importedPath(e)
	first, _, _ := strings.Cut(path, "/")
	return path != "" && !strings.Contains(first, ".")
}

// isPredeclared reports whether an identifier is a type or a value of CUE itself.
func isPredeclared(id *ast.Ident) bool {
	return id.Node == nil && slices.Contains([]string{"string", "int", "number", "bool", "bytes", "float", "null", "_", "true", "false", "uint", "int32", "int64", "uint16", "uint32"}, id.Name)
}

// chain notes what a chain of selections mentions.
func (b *blocks) chain(c chain) {
	for _, s := range c.steps {
		if !s.selected {
			b.walk(s.node)
		}
	}
	root := c.root()
	if root == nil {
		b.walk(c.base)
		return
	}
	block := b.of[root]
	if name := fieldName(root); atRoot(root) && !slices.Contains(roots, name) {
		b.mention(block, name)
	}
	if path, ok := b.index.pathOf(root, 0); ok {
		names, _ := c.literal()
		b.mentionPath(block, append(slices.Clone(path), names...))
		if at, known := b.of[root.Node]; known {
			b.mention(block, at) // the let or the field with another name for it, where the reference is recorded
		}
	} else if !atRoot(root) {
		b.mentionNear(block, root)
	}
}

// mentionPath notes that a block mentions a path from the root.
func (b *blocks) mentionPath(block string, path []string) {
	b.related[block] = true
	name := path[0]
	if slices.Contains(divided, name) && len(path) > 1 {
		name += "." + path[1]
	}
	b.mention(block, name)
}

// mention notes that a block mentions another one, or a field of the root that is divided into several.
func (b *blocks) mention(block, name string) {
	if b.mentions[block] == nil {
		b.mentions[block] = map[string]bool{}
	}
	b.mentions[block][name] = true
}

// mentionNear notes that a block mentions a name that is declared at the root of no file: the variable of a clause, an
// alias, a let, or a field beside it.
func (b *blocks) mentionNear(block string, id *ast.Ident) {
	if _, imported := id.Node.(*ast.ImportSpec); imported {
		b.related[block] = b.related[block] || !isBuiltin(id) // what it declares is not looked at
		return
	}
	b.related[block] = true
	at, known := b.of[id.Node]
	if !known {
		at, known = b.of[id.Scope]
	}
	_, aliased := id.Node.(*ast.Alias)
	switch {
	case !known || aliased && at != block: // an alias in the rest may stand for all components
		b.indivisible = true
	default:
		b.mention(block, at)
	}
}

// closure returns the blocks that a block rests on.
func (b *blocks) closure(from ...string) []string {
	seen := map[string]bool{}
	var visit func(block string)
	visit = func(block string) {
		if seen[block] {
			return
		}
		seen[block] = true
		for name := range b.mentions[block] {
			for _, to := range b.named(name) {
				visit(to)
			}
		}
	}
	visit(rest)
	for _, block := range from {
		visit(block)
	}
	return slices.Sorted(maps.Keys(seen))
}

// named returns the blocks that a name leads to.
func (b *blocks) named(name string) []string {
	if !slices.Contains(divided, name) {
		return []string{name}
	}
	var out []string
	for block := range b.mentions {
		if strings.HasPrefix(block, name+".") {
			out = append(out, block)
		}
	}
	return out
}

// frame returns the blocks that the frame rests on.
func (b *blocks) frame() []string {
	var out []string
	for block := range b.mentions {
		if !isPart(block) && block != "tests" {
			out = append(out, block)
		}
	}
	return b.closure(out...)
}

// relatesFields reports whether the schema of the resource relates fields to each other.
func (b *blocks) relatesFields() bool {
	return slices.ContainsFunc(b.closure("cr"), func(block string) bool { return block != rest && b.related[block] })
}
