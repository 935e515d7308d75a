package syntax

import (
	"slices"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A ComputedReference is a reference of a component to a live object or an output of another one whose name is computed. The text does
// not show which one that is, so that no edge follows.
type ComputedReference struct {
	// Component is the name of the component, or "" if that is computed, too.
	Component string
	Position  fault.Position
	// Text is the reference up to the name, such as live["web-\(n)"], and Label the name as that of a field.
	Text, Label string
}

// ComputedNames are the references whose names only an evaluation tells.
type ComputedNames struct {
	// selected are the places at which something is selected by a computed name, or below one.
	selected map[fault.TokenPosition]bool
	// references are those of components.
	references []ComputedReference
}

// ComputedReferences returns the references of components that declare no edge with a computed name.
func (c *ComputedNames) ComputedReferences() []ComputedReference { return slices.Clone(c.references) }

// SelectsComputed reports whether something that may come in time, such as a live object, is selected at a place by a computed name, or
// below one, as in live["web-\(n)"].deployment.status.
func (c *ComputedNames) SelectsComputed(at fault.TokenPosition) bool { return c.selected[at] }

// addComputedSelections notes where a reference selects something by a computed name. Of the custom resource, what is not there will
// not come.
func (c *ComputedNames) addComputedSelections(f found) {
	if f.Path[0] == "cr" {
		return
	}
	for _, s := range f.chain.steps[f.literal:] {
		if at := fault.TokenPositionOf(s.node.Pos()); at != (fault.TokenPosition{}) {
			c.selected[at] = true
		}
	}
}

// addComputed notes the computed references of a component.
func (x *reader) addComputed(body Member, all []found) {
	if declaresComputedEdge(body) {
		return
	}
	for _, f := range all {
		name, is := f.computedName()
		if !is || slices.ContainsFunc(x.ComputedNames.references, func(o ComputedReference) bool { return o.Position == f.Position && o.Component == body.name }) {
			continue
		}
		text := Source(name)
		if body.field != nil && text == labelSource(body.field.Label) {
			continue // it is the component itself
		}
		label := text
		if _, is := name.(*ast.Interpolation); !is {
			label = "(" + text + ")"
		}
		x.ComputedNames.references = append(x.ComputedNames.references, ComputedReference{body.name, f.Position, f.Path[0] + "[" + text + "]", label})
	}
}

// labelSource returns a computed label as the expression of the name.
func labelSource(label ast.Label) string {
	if paren, is := unaliased(label).(*ast.ParenExpr); is {
		return Source(paren.X)
	}
	if e, is := unaliased(label).(ast.Expr); is {
		return Source(e)
	}
	return ""
}

// declaresComputedEdge reports whether a component declares an edge whose target is computed.
func declaresComputedEdge(body Member) bool {
	return slices.ContainsFunc(body.Members(), func(m Member) bool {
		return m.name == "dependsOn" && slices.ContainsFunc(m.Members(), func(to Member) bool { return to.kind != named })
	})
}

// computedName returns the name of the component that a reference leads to, if it is computed.
func (f found) computedName() (ast.Expr, bool) {
	if len(f.Path) != 1 || f.literal >= len(f.chain.steps) || f.chain.steps[f.literal].literal {
		return nil, false
	}
	behind := f.chain.steps[f.literal+1:]
	if f.Path[0] != "live" && (f.Path[0] != "components" || len(behind) == 0 || behind[0].name != "outputs") {
		return nil, false
	}
	name, is := f.chain.steps[f.literal].node.(ast.Expr)
	return name, is
}
