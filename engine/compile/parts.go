package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// A rollout of eight components that may each be in three states has thousands of shapes, but there are 24 shapes of a
// component. So a template is divided into parts: the frame, the components, and the fields of the status. Each part
// holds for all sessions that look the same to it. Of the parts of some templates others are assembled, without CUE.

// divide adds to each part of a template the conditions that decide about it, and notes whether the parts hold for
// themselves.
func (t *Template) divide(v *program.Views, conditions []decidedCondition) {
	for _, c := range conditions {
		t.conditions = append(t.conditions, c.condition)
		used := false
		for part, guards := range t.guardsByPart(v) {
			if v.SeesAll(part, c.condition) {
				*guards = append(*guards, c.guards...)
				used = true
			}
		}
		if !used {
			t.Guards = append(t.Guards, c.guards...)
		}
	}
	t.Divisible = len(v.Parts()) > 0 && t.seesItself(v)
}

// guardsByPart returns where the guards of each part are. The frame has those of everything that is in no part of its own.
func (t *Template) guardsByPart(v *program.Views) map[string]*[]*template.Node {
	out := map[string]*[]*template.Node{syntax.Frame: &t.Guards}
	for i, c := range t.Rollout.Components {
		if part := v.PartOf(syntax.ComponentPart(c.Name)); part != syntax.Frame {
			out[part] = &t.Components[i].Guards
		}
	}
	for i, f := range t.Status {
		if part := v.PartOf(syntax.StatusPart(f.Name)); part != syntax.Frame {
			out[part] = &t.Status[i].Guards
		}
	}
	return out
}

// seesItself reports whether each part refers to nothing but what it sees.
func (t *Template) seesItself(v *program.Views) bool {
	sees := func(part string, places []**template.Node) bool {
		return !slices.ContainsFunc(places, func(n **template.Node) bool { return *n != nil && !v.SeesAll(part, *n) })
	}
	ok := sees(syntax.Frame, append(placesOf(t.Guards), &t.RequeueAfter))
	for i := range t.Inputs {
		ok = ok && sees(syntax.Frame, []**template.Node{&t.Inputs[i].Namespace, &t.Inputs[i].Object, &t.Inputs[i].Selector})
	}
	for i, c := range t.Rollout.All() {
		at := &t.Components[i]
		ok = ok && sees(v.PartOf(syntax.ComponentPart(c.Name)), append(placesOf(at.Guards), at.nodes()...))
	}
	for i := range t.Status {
		f := &t.Status[i]
		ok = ok && sees(v.PartOf(syntax.StatusPart(f.Name)), append(placesOf(f.Guards), &f.Value))
	}
	return ok
}

// placesOf returns the places of nodes.
func placesOf(nodes []*template.Node) []**template.Node {
	out := make([]**template.Node, len(nodes))
	for i := range nodes {
		out[i] = &nodes[i]
	}
	return out
}

// Roster is a text that only templates with the same components and hooks have, and with the same values of the resource that are
// secret: no message of another part may rest on what a component renders a Secret from.
func (t *Template) Roster() string {
	var b strings.Builder
	for _, c := range t.Rollout.All() {
		fmt.Fprintf(&b, "%q ", c.Name)
	}
	fmt.Fprintf(&b, "%q", t.SecretSpec)
	return b.String()
}

// Parts returns the parts of a view of which a template has one of its own, or nil if it has none.
func (t *Template) Parts(v *program.Views) []string {
	if !t.Divisible {
		return nil
	}
	there := map[string]bool{}
	for _, c := range t.Rollout.Components {
		there[syntax.ComponentPart(c.Name)] = true
	}
	return slices.DeleteFunc(v.Parts(), func(part string) bool {
		return strings.HasPrefix(part, syntax.ComponentPart("")) && !there[part]
	})
}

// Assembled returns a template of the parts of others: of one the frame, and of those that from returns each other part of
// a view. It errors if one of them cannot be written as JSON.
func (t *Template) Assembled(v *program.Views, from func(part string) *Template) (*Template, error) {
	out := t.plain
	out.Rollout.Components = slices.Clone(out.Rollout.Components)
	out.Components = slices.Clone(out.Components)
	for i, c := range out.Rollout.Components {
		part := v.PartOf(syntax.ComponentPart(c.Name))
		if part == syntax.Frame {
			continue
		}
		other := from(part)
		at := slices.IndexFunc(other.Rollout.Components, func(o program.Component) bool { return o.Name == c.Name })
		out.Rollout.Components[i], out.Components[i] = other.Rollout.Components[at], other.Components[at]
	}
	out.Status = nil
	for _, f := range t.Status {
		if v.PartOf(syntax.StatusPart(f.Name)) == syntax.Frame {
			out.Status = append(out.Status, f)
		}
	}
	for _, part := range v.Parts() {
		name, ok := strings.CutPrefix(part, syntax.StatusPart(""))
		if !ok {
			continue
		}
		for _, f := range from(part).Status {
			if f.Name == name {
				out.Status = append(out.Status, f)
			}
		}
	}
	// The nodes of a template are shared among its parts, and numbered: another template needs its own.
	text, err := json.Marshal(&out)
	if err != nil {
		return nil, fmt.Errorf("assembling a template: %w", err)
	}
	assembled := &Template{}
	return assembled, assembled.UnmarshalJSON(text)
}
