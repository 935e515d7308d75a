package syntax

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// Made is what a value is made of, as far as the text shows. A condition is no part of it: it only decides
// whether a value that the package writes is used.
type Made struct {
	// Places are where the author wrote a part of it: first the value itself, then what it refers to.
	Places []fault.Position
	// Literals are where the author wrote texts and numbers that are part of it. Not all are among the Places: an
	// element of a list has none of its own.
	Literals []fault.Position
	// External are the references to values from outside the package, each once.
	External []Reference
	// Cut is true if there are more than are followed: too many, or in another package.
	Cut bool
}

// maxMadeSteps bounds how many expressions are looked at to find what a value is made of.
const maxMadeSteps = 2_000

// MadeOf returns what a value is made of whose text is some nodes: fields, or expressions. Of a field of the
// package, sourcesAt returns the nodes that an evaluation used, or none if it does not know: an evaluation
// knows which branch of a condition was taken.
func (x *Index) MadeOf(nodes []ast.Node, sourcesAt func(path []string) []ast.Node) Made {
	m := &making{index: x, sourcesAt: sourcesAt, seen: map[string]bool{}}
	m.nodes(nodes)
	return m.out
}

// making follows what a value is made of.
type making struct {
	index     *Index
	sourcesAt func(path []string) []ast.Node
	seen      map[string]bool
	out       Made
}

// nodes adds nodes that are values as a whole. What is in a file of another package is not followed: its
// names mean something else.
func (m *making) nodes(nodes []ast.Node) {
	for _, n := range nodes {
		value, at := n, n
		if f, ok := n.(*ast.Field); ok {
			value, at = f.Value, f.Label
		}
		place := fault.PositionAt(at.Pos())
		if place.IsContract() {
			continue
		}
		m.place(place)
		if m.isOwn(n) {
			m.whole(value)
			continue
		}
		m.literal(place) // or whatever is there
		_, literal := value.(*ast.BasicLit)
		m.out.Cut = m.out.Cut || !literal
	}
}

// isOwn reports whether a node is in a file of the package.
func (m *making) isOwn(n ast.Node) bool {
	return slices.ContainsFunc(m.index.files, func(f *ast.File) bool { return f.Filename == n.Pos().Filename() })
}

func (m *making) place(at fault.Position) {
	if at.File != "" && !at.IsContract() && !slices.Contains(m.out.Places, at) {
		m.out.Places = append(m.out.Places, at)
	}
}

// basic adds a text or a number; the other literals say nothing that could be secret.
func (m *making) basic(l *ast.BasicLit) {
	if !slices.Contains([]token.Token{token.NULL, token.TRUE, token.FALSE}, l.Kind) {
		m.literal(fault.PositionAt(l.Pos()))
	}
}

func (m *making) literal(at fault.Position) {
	if at.File != "" && !at.IsContract() && !slices.Contains(m.out.Literals, at) {
		m.out.Literals = append(m.out.Literals, at)
	}
}

// whole follows the references in an expression whose whole value is used.
func (m *making) whole(n ast.Node) {
	if n == nil || len(m.seen) > maxMadeSteps {
		return
	}
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			m.basic(n)
			return true
		case *ast.Field:
			if kindOf(n) == dynamic {
				m.whole(unaliased(n.Label))
			}
			m.whole(n.Value)
			return false
		case *ast.Comprehension:
			m.whole(n.Value)
			return false
		case *ast.LetClause:
			return false // it is followed where it is used
		case *ast.BinaryExpr:
			_, root := m.index.Presence(n)
			return root == nil
		}
		c, ok := asChain(n)
		if !ok {
			return true
		}
		if c.root() == nil {
			m.whole(c.base)
		} else {
			m.chain(c, nil)
		}
		for _, s := range c.steps {
			if !s.literal {
				m.whole(s.node)
			}
		}
		return false
	}, nil)
}

// isNew reports whether a path below a node was not followed yet, and notes that it is now. None is once there were too many.
func (m *making) isNew(below any, path []string) bool {
	key := fmt.Sprintf("%p %s", below, strings.Join(path, "\x00"))
	if m.seen[key] {
		return false
	}
	m.seen[key] = true
	m.out.Cut = m.out.Cut || len(m.seen) > maxMadeSteps
	return len(m.seen) <= maxMadeSteps
}

// chain follows a chain to the value at a path below it.
func (m *making) chain(c chain, path []string) {
	if !m.isNew(c.root(), slices.Concat(c.names(), path)) {
		return
	}
	if at, ok := m.fromRoot(c, path); ok {
		if used := m.sourcesAt(at); len(used) > 0 {
			m.nodes(used)
			return
		}
	}
	if _, rooted := m.index.rooted(c.root()); !rooted {
		m.aliases(c.root())
	}
	for _, r := range m.index.resolveChain(c, path) {
		m.follow(r)
	}
}

// aliases adds the fields that are other names for a value from outside the package, which a resolution
// passes over.
func (m *making) aliases(id *ast.Ident) {
	for _, d := range m.index.declared(id) {
		if _, ok := m.index.pathThrough(id, d, 0); ok && d.field != nil {
			m.place(d.Position())
		}
	}
}

// fromRoot returns the path of a chain from the root of the package, if the package itself writes what is
// there.
func (m *making) fromRoot(c chain, path []string) ([]string, bool) {
	root := c.root()
	names, literal := c.literal()
	if !literal || slices.Contains(path, Each) {
		return nil, false
	}
	at, ok := m.index.rooted(root)
	if !ok {
		if name := fieldName(root); atRoot(root) && len(m.index.fields[name]) > 0 {
			at, ok = []string{name}, true
		}
	}
	at = slices.Concat(at, names, path)
	if !ok || slices.Contains([]string{"cr", "live", "config"}, at[0]) {
		return nil, false
	}
	_, external := externalReference(root, at, nil)
	return at, !external
}

// follow continues after one step.
func (m *making) follow(r resolution) {
	if r.external != nil {
		ref := Reference{Path: slices.Concat(r.external.Path, r.path), Position: r.external.Position}
		if !slices.ContainsFunc(m.out.External, func(o Reference) bool { return slices.Equal(o.Path, ref.Path) }) {
			m.out.External = append(m.out.External, ref)
		}
		return
	}
	if len(r.path) == 0 || r.key {
		if r.field != nil {
			m.place(r.Position())
		}
		m.whole(r.value)
		return
	}
	m.find(r.Member, r.path)
}

// find follows a member to the value at a path below it.
func (m *making) find(at Member, path []string) {
	if at.value == nil {
		return
	}
	if c, ok := asChain(at.value); ok && c.root() != nil {
		m.chain(c, path)
		return
	}
	if !m.isNew(at.value, path) {
		return
	}
	resolutions, ends := m.index.resolve(at.value, path)
	if ends { // a call makes it
		m.place(at.Position())
		m.whole(at.value)
	}
	for _, r := range resolutions {
		m.follow(r)
	}
}
