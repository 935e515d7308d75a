package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// An ImportedType is a definition of an imported package, such as #Deployment.
type ImportedType struct {
	// Package is the import path.
	Package string
	// Name is the name of the definition, without the #.
	Name string
}

// Choices are the values that a string field of an object or of an input may have, as far as the text
// shows.
type Choices struct {
	// Texts are string literals.
	Texts []string
	// Types are the imported definitions that have the field. They are found for the field kind only.
	Types []ImportedType
	// Sources are the sources outside the package whose values the field has as they are.
	Sources []ExternalSource
	// Computed are the sources outside the package from which its values are computed.
	Computed []ExternalSource
}

// Position returns where the object is written.
func (w *SourceObject) Position() fault.Position { return w.text[0].at }

// Conditional reports whether a condition or a loop is around the object in the text.
func (w *SourceObject) Conditional() bool {
	return slices.ContainsFunc(w.text, func(at sourceAt) bool { return at.conditional })
}

// Choices returns the values of a field at a path of the object.
func (w *SourceObject) Choices(path ...string) Choices {
	var out Choices
	out.Sources, out.Types = w.trace(path, func(t *tracer, n ast.Node) {
		if lit, ok := n.(*ast.BasicLit); ok {
			out.Texts = append(out.Texts, unquoted(lit))
			return
		}
		before := len(t.origins)
		t.value(n, 0)
		out.Computed = append(out.Computed, t.origins[before:]...)
		t.origins = t.origins[:before]
	})
	return out
}

// MayBeTrue reports whether a field at a path of the object may be true, as far as the text shows.
func (w *SourceObject) MayBeTrue(path ...string) bool {
	may := false
	sources, _ := w.trace(path, func(t *tracer, n ast.Node) {
		if lit, ok := n.(*ast.BasicLit); ok {
			may = may || lit.Kind == token.TRUE
			return
		}
		t.value(n, 0)
	})
	return may || len(sources) > 0
}

// Policies returns the policies in the text for the objects of components, at paths as in
// components.web.policy.deployment, and for those of hooks.
func (x *Index) Policies() []SourceObject {
	components, _ := x.sourceObjectsAt("components", []string{Each, "policy", Each})
	hooks, _ := x.sourceObjectsAt("hooks", []string{Each, Each, "policy", Each})
	return slices.Concat(components, hooks)
}

// importPath returns the path of an import without the name of the package and the major version of the
// module.
func importPath(spec *ast.ImportSpec) string {
	path := strings.Trim(spec.Path.Value, `"`)
	path, _, _ = strings.Cut(path, ":")
	path, _, _ = strings.Cut(path, "@")
	return path
}
