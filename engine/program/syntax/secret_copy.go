package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
)

// A Copy is a place at which the package copies the content of a Secret.
type Copy struct {
	Kind     CopyKind
	Position fault.Position
	// Path is the field that gets the copy, and From is the reference to the Secret.
	Path, From string
}

// A CopyKind is the form in which the content of a Secret is copied.
type CopyKind string

// The forms of a copy.
const (
	CopyOfValue  CopyKind = "Value"
	CopyOfDigest CopyKind = "Digest"
	// CopyAsName is a copy into the name of a component, which status, events and logs show.
	CopyAsName CopyKind = "Name"
)

// Copies returns where the package copies the content of a Secret into a status, or into an
// object that is not a Secret, verbatim or as a digest, as far as the text shows. kindAt
// returns the kind of the object or input at a path, or "".
func (x *Index) Copies(kindAt func(path []string) string) []Copy {
	c := &copies{index: x, kindAt: kindAt}
	for _, m := range x.fields["status"] {
		eachMember(m.value, m.guards, func(d Member) { c.visit([]string{"status"}, d, nil) })
	}
	for _, component := range x.order {
		c.objects(component, []string{"components", component})
	}
	for _, phase := range x.below(x.fields["hooks"], Each, 0).names {
		for _, m := range (&secretText{index: x}).under(x.fields["hooks"], phase) {
			eachMember(m.value, m.guards, func(hook Member) {
				if hook.kind == named {
					c.objects(HookName(phase, hook.name), []string{"hooks", phase, hook.name})
				}
			})
		}
	}
	for _, m := range x.definitions[ComputedName] {
		c.name(m)
	}
	return c.found
}

// name looks at the computed name of a component or a hook: status, events and logs show it.
func (c *copies) name(m Member) {
	if m.field == nil {
		return
	}
	r := newReferences(c.index)
	r.follow, r.skip = true, noValue
	used := map[string]bool{}
	for _, id := range identsIn(m.field.Label) {
		used[id.Name] = true
	}
	for _, g := range m.guards {
		if loop, ok := g.(*ast.ForClause); ok && loop.Value != nil && used[loop.Value.Name] {
			r.clause(g)
		}
	}
	r.inside(m.field.Label)
	if from, ok := c.first(r.found, c.secret); ok {
		c.found = append(c.found, Copy{CopyAsName, m.Position(), "components", from})
	}
}

// copies looks for copies of the content of Secrets.
type copies struct {
	index  *Index
	kindAt func(path []string) string
	found  []Copy
}

// objects looks at the objects of a component.
func (c *copies) objects(component string, path []string) {
	s := &secretText{index: c.index}
	for _, objects := range s.under(s.component(component), "objects") {
		eachMember(objects.value, objects.guards, func(o Member) {
			if o.kind != named {
				return // only an evaluation can tell its kind
			}
			at := slices.Concat(path, []string{"objects", o.name})
			switch c.kindAt(at) {
			case "":
			case object.SecretKind:
				c.visit(at, o, SecretFields)
			default:
				c.visit(at, o, nil)
			}
		})
	}
}

// visit looks at a member and below it. It leaves out the fields in but, and with them the
// hidden fields beside them, which may be what those are made of.
func (c *copies) visit(path []string, m Member, but []string) {
	at := path
	if m.kind == named && m.name != path[len(path)-1] {
		at = slices.Concat(path, []string{m.name})
	}
	if lit, ok := m.value.(*ast.StructLit); ok {
		eachDecl(lit.Elts, m.guards, func(d Member) {
			if d.kind == named && (slices.Contains(but, d.name) || len(but) > 0 && !isRegular(d.name)) {
				return
			}
			c.visit(at, d, nil)
		})
		return
	}
	if len(but) > 0 {
		eachMember(m.value, m.guards, func(d Member) {
			if d.kind == named && isRegular(d.name) && !slices.Contains(but, d.name) {
				c.visit(at, d, nil)
			}
		})
		return
	}
	c.leaf(at, m)
}

// leaf reports a member whose value has what a Secret holds, or a digest of that.
func (c *copies) leaf(path []string, m Member) {
	var digests []*ast.CallExpr
	r := newReferences(c.index)
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
		c.report(CopyOfValue, path, m, from)
		return
	}
	for _, call := range digests {
		inside := newReferences(c.index)
		inside.follow, inside.skip = true, noValue
		for _, arg := range call.Args {
			inside.walk(arg)
		}
		if from, ok := c.first(inside.found, c.secretOrSpec); ok {
			c.report(CopyOfDigest, path, m, from)
			return
		}
	}
}

// report notes a copy.
func (c *copies) report(kind CopyKind, path []string, m Member, from string) {
	c.found = append(c.found, Copy{kind, m.Position(), Reference{Path: path}.String(), from})
}

// first returns the first reference that leads into a Secret.
func (c *copies) first(all []found, leads func(Reference) (string, bool)) (string, bool) {
	for _, ref := range all {
		if from, ok := leads(ref.Reference); ok {
			return from, true
		}
	}
	return "", false
}

// secretOrSpec is as secret, and also knows the fields of the spec that Secrets are made
// of.
func (c *copies) secretOrSpec(r Reference) (string, bool) {
	if from, ok := c.secret(r); ok {
		return from, true
	}
	for _, path := range c.index.secretSpec {
		n := min(len(path), len(r.Path))
		if n > len(wholeSpec) && slices.Equal(path[:n], r.Path[:n]) {
			return Reference{Path: r.Path}.String(), true
		}
	}
	return "", false
}

// secret returns the reference up to the content of a Secret, if it leads into one.
func (c *copies) secret(r Reference) (string, bool) {
	of, below, ok := r.Object()
	content := len(below) == 0 || slices.Contains(SecretFields, below[0])
	if !ok || !content || c.kindAt(of) != object.SecretKind {
		return "", false
	}
	return Reference{Path: r.Path[:len(r.Path)-max(len(below)-1, 0)]}.String(), true
}

// isDigest reports whether a call makes a digest.
func isDigest(call *ast.CallExpr) bool {
	return strings.HasPrefix(importedPath(chainOf(call.Fun).base), "crypto/")
}

// noValue reports whether an expression shows nothing of the values in it: a condition, a
// comparison, a length, or a loop over keys.
func noValue(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfClause:
		return true
	case *ast.ForClause:
		return n.Value == nil || n.Value.Name == "_"
	case *ast.BinaryExpr:
		return slices.Contains(truths, n.Op)
	case *ast.CallExpr:
		root := chainOf(n.Fun).root()
		return root != nil && root.Name == "len"
	}
	return false
}

// truths are the operators whose result is true or false.
var truths = []token.Token{
	token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ, token.MAT, token.NMAT, token.LAND, token.LOR,
}

// isCondition reports whether an expression is the condition of a comprehension.
func isCondition(n ast.Node) bool {
	_, ok := n.(*ast.IfClause)
	return ok
}
