package program

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program/syntax"
)

// contentOfSecrets returns the nodes in the author's files that the content of Secrets comes from, or of objects that
// may turn out to be Secrets.
func (o origins) contentOfSecrets() []ast.Node {
	all := []cue.Value{Lookup(o.root, "components")}
	for _, phase := range HookPhases {
		all = append(all, Lookup(o.root, "hooks", string(phase)))
	}
	var out []ast.Node
	for _, components := range all {
		for _, component := range fields(components) {
			for _, o := range fields(Lookup(component, "objects")) {
				if kind, err := Lookup(o, "kind").String(); err != nil || object.MayBeSecret(kind) {
					out = append(out, contentOf(o)...)
				}
			}
		}
	}
	return out
}

// contentOf returns the nodes that the content of a Secret comes from, as a whole and field by field.
func contentOf(secret cue.Value) []ast.Node {
	var out []ast.Node
	for _, name := range secretFields {
		content := Lookup(secret, name)
		out = append(out, writtenBy(content)...)
		for _, value := range fields(content) {
			out = append(out, writtenBy(value)...)
		}
	}
	return out
}

// shows reports whether the lines of a value, or what it is made of, show a literal that the content of a Secret is
// made of, too. Lines count, because they are shown as a whole.
func (o origins) shows(made syntax.Made, from []Source) bool {
	if o.content.Cut && len(made.Literals) > 0 {
		return true // any literal may be part of what was not followed
	}
	lines := slices.Concat(made.Places, made.Literals)
	for _, s := range from {
		lines = append(lines, s.Schema...)
	}
	return slices.ContainsFunc(o.content.Literals, func(secret fault.Position) bool {
		return slices.ContainsFunc(lines, func(at fault.Position) bool { return at.File == secret.File && at.Line == secret.Line })
	})
}
