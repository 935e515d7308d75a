package program

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// Copies returns where the package copies what a Secret holds into a status, or into an
// object that is no Secret, as it is or as a digest, as far as the text tells.
func (p *Program) Copies() fault.Faults {
	c := &copies{program: p}
	for _, m := range p.index.fields["status"] {
		eachMember(m.value, m.guards, func(d member) { c.visit([]string{"status"}, d, nil) })
	}
	for _, component := range p.index.order {
		c.objects(component, []string{"components", component})
	}
	for _, phase := range Phases {
		for _, m := range (&secretText{index: p.index}).under(p.index.fields["hooks"], string(phase), 0) {
			eachMember(m.value, m.guards, func(hook member) {
				if hook.kind == named {
					c.objects(phase.hook(hook.name), []string{"hooks", string(phase), hook.name})
				}
			})
		}
	}
	for _, m := range p.index.homes[computedName] {
		c.name(m)
	}
	return c.found.Sorted()
}

// name looks at the computed name of a component or a hook, which is said everywhere.
func (c *copies) name(m member) {
	if m.field == nil {
		return
	}
	r := newReferences(c.program.index)
	r.follow, r.skip = true, noValue
	used := map[string]bool{}
	ast.Walk(m.field.Label, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			used[id.Name] = true
		}
		return true
	}, nil)
	for _, g := range m.guards {
		if loop, ok := g.(*ast.ForClause); ok && loop.Value != nil && used[loop.Value.Name] {
			r.clause(g)
		}
	}
	r.inside(m.field.Label)
	if from, ok := c.first(r.found, c.secret); ok {
		c.found = append(c.found, fault.Fault{
			Position: fault.At(m.field.Label.Pos()), Path: "components",
			Message: "its name is made of what a Secret holds, " + from + ", and is said everywhere", Hint: "let the name come from elsewhere",
		})
	}
}

// copies looks for what is copied.
type copies struct {
	program *Program
	found   fault.Faults
}

// objects looks at the objects of a component.
func (c *copies) objects(component string, path []string) {
	s := &secretText{index: c.program.index}
	for _, objects := range s.under(s.component(component), "objects", 0) {
		eachMember(objects.value, objects.guards, func(o member) {
			if o.kind != named {
				return // of which kind it is only an evaluation can tell
			}
			at := slices.Concat(path, []string{"objects", o.name})
			switch c.kindOf(at, []member{o}) {
			case "":
			case secretKind:
				c.visit(at, o, secretFields)
			default:
				c.visit(at, o, nil)
			}
		})
	}
}

// kindOf returns the kind of an object, as far as it is known.
func (c *copies) kindOf(path []string, declared []member) string {
	var sels []cue.Selector
	for _, name := range append(slices.Clip(path), "kind") {
		sels = append(sels, cue.Str(name))
	}
	if kind := stringOr(c.program.static.LookupPath(cue.MakePath(sels...)), ""); kind != "" {
		return kind
	}
	s := &secretText{index: c.program.index}
	if s.isSecret(declared) {
		return secretKind
	}
	for _, kind := range s.under(declared, "kind", 0) {
		if lit, ok := kind.value.(*ast.BasicLit); ok {
			return unquoted(lit)
		}
	}
	return ""
}

// visit looks at a member and below it, but not at those of some names, nor at what is
// hidden in an object that has such: it may be for those.
func (c *copies) visit(path []string, m member, but []string) {
	at := path
	if m.kind == named && m.name != path[len(path)-1] {
		at = slices.Concat(path, []string{m.name})
	}
	if lit, ok := m.value.(*ast.StructLit); ok {
		eachDecl(lit.Elts, m.guards, func(d member) {
			if d.kind == named && (slices.Contains(but, d.name) || len(but) > 0 && !isRegular(d.name)) {
				return
			}
			c.visit(at, d, nil)
		})
		return
	}
	if len(but) > 0 {
		eachMember(m.value, m.guards, func(d member) {
			if d.kind == named && isRegular(d.name) && !slices.Contains(but, d.name) {
				c.visit(at, d, nil)
			}
		})
		return
	}
	c.leaf(at, m)
}

// leaf reports a member whose value has what a Secret holds, or a digest of that.
func (c *copies) leaf(path []string, m member) {
	var digests []*ast.CallExpr
	r := newReferences(c.program.index)
	r.follow, r.skip = true, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && isDigest(call) {
			digests = append(digests, call)
			return true
		}
		return noValue(n)
	}
	r.member(m)
	if from, ok := c.first(r.found, c.secret); ok {
		c.report(path, m, "it copies what a Secret holds, "+from+", to where more people may read it", "let whoever needs it refer to the Secret")
		return
	}
	for _, call := range digests {
		inside := newReferences(c.program.index)
		inside.follow, inside.skip = true, noValue
		for _, arg := range call.Args {
			inside.walk(arg)
		}
		if from, ok := c.first(inside.found, c.secretOrSpec); ok {
			c.report(path, m, "it shows a digest of what a Secret holds, "+from+", by which whoever reads it can try guesses", hintDigest)
			return
		}
	}
}

// hintDigest says what to use in place of a digest.
const hintDigest = `the annotation "` + DigestAnnotation + `" of a Secret in live or inputs is one that tells nothing`

// report notes what is wrong with a member.
func (c *copies) report(path []string, m member, message, hint string) {
	position := fault.Position{}
	if m.field != nil {
		position = fault.At(m.field.Label.Pos())
	} else if m.value != nil {
		position = fault.At(m.value.Pos())
	}
	c.found = append(c.found, fault.Fault{Position: position, Path: Reference{Path: path}.String(), Message: message, Hint: hint})
}

// first returns the first of some references that leads into a Secret.
func (c *copies) first(all []found, leads func(Reference) (string, bool)) (string, bool) {
	for _, ref := range all {
		if from, ok := leads(ref.Reference); ok {
			return from, true
		}
	}
	return "", false
}

// secretOrSpec is secret, also for a field of the spec that Secrets are made of.
func (c *copies) secretOrSpec(r Reference) (string, bool) {
	if from, ok := c.secret(r); ok {
		return from, true
	}
	for _, path := range c.program.index.secretSpec {
		n := min(len(path), len(r.Path))
		if n > len(wholeSpec) && slices.Equal(path[:n], r.Path[:n]) {
			return Reference{Path: r.Path}.String(), true
		}
	}
	return "", false
}

// secret returns how the package comes to the Secret that a reference leads into, if it
// does.
func (c *copies) secret(r Reference) (string, bool) {
	var of []string
	var below int
	switch {
	case len(r.Path) > 2 && r.Path[0] == "inputs" && strings.HasPrefix(r.Path[2], "object"):
		of, below = []string{"inputs", r.Path[1]}, 3
		if r.Path[2] == "objects" {
			below = 4
		}
	case len(r.Path) > 2 && r.Path[0] == "live":
		of, below = []string{"components", r.Path[1], "objects", r.Path[2]}, 3
	case len(r.Path) > 3 && r.Path[0] == "components" && r.Path[2] == "objects":
		of, below = r.Path[:4], 4
	default:
		return "", false
	}
	content := len(r.Path) <= below || slices.Contains(secretFields, r.Path[below])
	if !content || c.kindOf(of, (&secretText{index: c.program.index}).at(of)) != secretKind {
		return "", false
	}
	return Reference{Path: r.Path[:min(below+1, len(r.Path))]}.String(), true
}

// at returns what is written at a path.
func (s *secretText) at(path []string) []member {
	out := s.index.fields[path[0]]
	for _, name := range path[1:] {
		out = s.under(out, name, 0)
	}
	return out
}

// isDigest reports whether a call makes a digest.
func isDigest(call *ast.CallExpr) bool {
	root, _, _ := flatten(call.Fun)
	if root == nil {
		return false
	}
	spec, imported := root.Node.(*ast.ImportSpec)
	return imported && strings.HasPrefix(spec.Path.Value, `"crypto/`)
}

// noValue reports whether nothing of the values in an expression is in its own: it is a
// condition, a comparison or a length, or runs through keys.
func noValue(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfClause:
		return true
	case *ast.ForClause:
		return n.Value == nil || n.Value.Name == "_"
	case *ast.BinaryExpr:
		return slices.Contains(truths, n.Op)
	case *ast.CallExpr:
		root, _, _ := flatten(n.Fun)
		return root != nil && root.Name == "len"
	}
	return false
}

// truths are the operators that make no more of their operands than true or false.
var truths = []token.Token{
	token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ, token.MAT, token.NMAT, token.LAND, token.LOR,
}

// isCondition reports whether an expression is the condition of a comprehension.
func isCondition(n ast.Node) bool {
	_, ok := n.(*ast.IfClause)
	return ok
}
