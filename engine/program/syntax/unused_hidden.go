package syntax

import (
	"cuelang.org/go/cue/ast"
)

// UnusedHidden returns the hidden fields and definitions at a path below the root that no name in the package refers to.
func (x *names) UnusedHidden(path ...string) []Member {
	var out []Member
	at := x.fields[path[0]]
	for _, name := range path[1:] {
		at = membersNamed(at, name)
	}
	for _, m := range at {
		for _, d := range m.Members() {
			if d.name != "" && !isRegular(d.name) && !x.used[d.name] {
				out = append(out, d)
			}
		}
	}
	return out
}

// usedHidden returns the names of hidden fields and definitions that files refer to.
func usedHidden(files []*ast.File) map[string]bool {
	out := map[string]bool{}
	labels := map[ast.Node]bool{}
	for n := range NodesIn(files...) {
		switch n := n.(type) {
		case *ast.Field:
			labels[n.Label] = true
		case *ast.Ident:
			if !labels[n] && !isRegular(n.Name) {
				out[n.Name] = true
			}
		}
	}
	return out
}
