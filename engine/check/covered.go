package check

import (
	"slices"
	"strings"

	"operetta.dev/engine/program"
)

// A Choice is one way to write a field of the spec, and whether some resource has it.
type Choice struct {
	// Path is the field, such as spec.mode, and Label the way, such as "left out".
	Path    string `json:"path"`
	Label   string `json:"label"`
	Covered bool   `json:"covered"`
}

// CoveredChoices returns the choices of the spec that a check would try, and which of them are in the given specs. There are
// none if no resource can be made up.
func CoveredChoices(p *program.Program, specs []any) []Choice {
	c, unmade := newChecker(p, Options{})
	if unmade != "" {
		return nil
	}
	taken := map[*branch][]bool{}
	for _, b := range c.branches {
		taken[b] = make([]bool, len(b.choices))
	}
	for _, spec := range specs {
		take(taken, c.spec, spec, spec != nil)
	}
	var out []Choice
	for _, b := range c.branches {
		if strings.HasPrefix(b.path, "inputs.") {
			continue // the specs say nothing about those
		}
		for i, choice := range b.choices {
			out = append(out, Choice{Path: b.path, Label: choice.label, Covered: taken[b][i]})
		}
	}
	return out
}

// take notes which choices a value at a place has.
func take(taken map[*branch][]bool, n *node, value any, exists bool) {
	at := choiceOf(n.choices, value, exists)
	if at < 0 {
		return
	}
	if n.branch != nil {
		taken[n.branch][at] = true
	}
	c := n.choices[at]
	switch value := value.(type) {
	case map[string]any:
		for _, f := range c.fields {
			below, exists := value[f.name]
			take(taken, f.node, below, exists)
		}
		for _, below := range value {
			if len(c.entries) > 0 {
				take(taken, c.entries[0].node, below, true)
			}
		}
	case []any:
		for _, below := range value {
			if len(c.elements) > 0 {
				take(taken, c.elements[0], below, true)
			}
		}
	}
}

// choiceOf returns the choice that a value has, or -1: a struct has all its fields, a list or map has as many elements
// or more, and a value that is none of the others has the one that is made up.
func choiceOf(choices []choice, value any, exists bool) int {
	if !exists {
		return slices.IndexFunc(choices, choice.isLeftOut)
	}
	best, made := -1, -1
	for i, c := range choices {
		switch {
		case c.literal != nil && equal(c.literal(0), value):
			return i
		case c.literal != nil && c.made && made < 0 && !isCollection(value):
			made = i
		case c.holds(value):
			best = i
		}
	}
	return max(best, made)
}

func isCollection(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// holds reports whether a value is the struct of a choice, or a list or map with at least its elements.
func (c choice) holds(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return c.fields != nil || c.entries != nil && len(c.entries) <= len(value)
	case []any:
		return c.elements != nil && len(c.elements) <= len(value)
	}
	return false
}

// SimplestResource returns the simplest resource that satisfies the schema of a package, with what is required and nothing
// else, or says why none can be made up.
func SimplestResource(p *program.Program) (resource map[string]any, unmade string) {
	c, unmade := newChecker(p, Options{})
	if unmade != "" {
		return nil, unmade
	}
	return c.make(make(selection, len(c.branches))).resource, ""
}
