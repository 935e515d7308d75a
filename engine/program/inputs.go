package program

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
)

// An Input is an object that the package reads and does not own, by its name, or all objects
// that a selector matches.
type Input struct {
	// Name is the author's name for it.
	Name string
	Kind schema.GroupVersionKind
	// Namespace is where to look; "" is the custom resource's.
	Namespace string
	// Object is the name of the one object, or "" with a selector.
	Object string
	// Selector are the labels of the objects.
	Selector map[string]string
	// ReadBy are the components that refer to it, as far as their names are written.
	ReadBy []string
	// Missing is the reason why it is not known yet what to read, or "".
	Missing  string
	Position fault.Position
}

// inputs returns the inputs of the package. One whose identity is not known yet has a reason in
// Missing, and is not read.
func (e *evaluator) inputs() ([]Input, fault.Faults) {
	var out []Input
	var faults fault.Faults
	for name, in := range fields(Lookup(e.root, "inputs")) {
		i, wrong := e.input(name, in)
		out = append(out, i)
		faults = append(faults, wrong...)
	}
	slices.SortStableFunc(out, func(a, b Input) int { return strings.Compare(a.Name, b.Name) })
	return out, faults
}

func (e *evaluator) input(name string, v cue.Value) (Input, fault.Faults) {
	i := Input{Name: name, Position: e.positionOf(v, "inputs", name), ReadBy: e.index.Readers(name)}
	var faults fault.Faults
	read := func(field string) any {
		part := Lookup(v, field)
		if !part.Exists() {
			return nil
		}
		value, err := data(part)
		if err == nil {
			return value
		}
		if own := fault.FromCUE(part.Validate(), part); len(own) > 0 {
			faults = append(faults, own...)
		} else if i.Missing == "" {
			f := e.explained(fault.FromCUE(err, part)[0])
			f.Path = ""
			i.Missing = "its " + field + " is not known yet: " + f.Located()
		}
		return nil
	}
	i.Kind = schema.FromAPIVersionAndKind(text(read("apiVersion")), text(read("kind")))
	i.Namespace, i.Object = text(read("namespace")), text(read("name"))
	i.Selector, _, _ = unstructured.NestedStringMap(map[string]any{"selector": read("selector")}, "selector") // the contract has strings
	if len(faults) == 0 && i.Missing == "" && i.Object == "" && i.Selector == nil {
		faults = append(faults, fault.Fault{Position: i.Position, Path: "inputs." + name, Message: "it has neither a name nor a selector", Hint: "write name: for one object, or selector: for several"})
	}
	if len(faults) > 0 {
		i.Missing = faults[0].Message
	}
	return i, faults
}

// Inputs returns the inputs that the package has whatever the resource is, by name, as far as they are known without one.
func (p *Program) Inputs() []Input {
	out, _ := p.withoutSession().inputs()
	return out
}

// UsedOnlyBy reports whether no other component than the given ones refers to an input.
func (i Input) UsedOnlyBy(components []string) bool {
	return len(i.ReadBy) > 0 && !slices.ContainsFunc(i.ReadBy, func(c string) bool { return !slices.Contains(components, c) })
}

// text returns a string, or "" if the value is not a string.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// inputValues returns the objects that were found for inputs and that the package reads: one
// object, or objects by name for a selector.
func (v *Views) inputValues(found map[string]FoundInput, enter entrance) map[string]any {
	if len(found) == 0 {
		return nil
	}
	out := map[string]any{}
	for name, f := range found {
		if !f.Several {
			if part := v.inputs.below(name, "object"); part != nil && len(f.Objects) == 1 {
				out[name] = map[string]any{"object": enter(part, f.Objects[0])}
			}
			continue
		}
		part := v.inputs.below(name, "objects")
		if part == nil {
			continue
		}
		objects := map[string]any{}
		for _, o := range f.Objects {
			key, _, _ := unstructured.NestedString(o, "metadata", "name")
			if each := part.field(key); each != nil {
				objects[key] = enter(each, o)
			}
		}
		out[name] = map[string]any{"objects": objects}
	}
	return out
}
