package program

import (
	"errors"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// ConvertResource returns what Convert returns, for a resource of a cluster. Its errors have nothing that comes from
// the spec, which may be a Secret's: no value, no figure, and no name of a map.
func (c *Conversions) ConvertResource(of Conversion) (map[string]any, error) {
	out, err := c.Convert(of.Spec, of.From, of.To)
	if err != nil {
		return nil, c.withoutValues(err)
	}
	return out, nil
}

// withoutValues returns an error of Convert without what comes from the spec.
func (c *Conversions) withoutValues(err error) error {
	if limit, over := errors.AsType[*LimitError](err); over {
		return &LimitError{Evaluated: limit.Evaluated, TooSlow: limit.TooSlow, Text: "the spec exceeds a limit of the package"}
	}
	if panicked, did := errors.AsType[*PanicError](err); did {
		return &PanicError{Package: panicked.Package, Cause: "in a conversion", Stack: panicked.Stack}
	}
	faults, are := errors.AsType[fault.Faults](err)
	if !are {
		return errors.New("the conversion failed")
	}
	out := make(fault.Faults, len(faults))
	for i, f := range faults {
		if first, _, _ := strings.Cut(f.Path, "."); first == "versions" {
			out[i] = f // the package has no such version, which is nothing of the spec
			continue
		}
		out[i] = fault.Fault{Code: f.Code, Position: f.Position, Path: c.writtenPath(f.Path), Message: "the value does not fit"}
		if f.Code == fault.Unset {
			out[i].Message = fault.UnsetMessage
		}
	}
	return out
}

// writtenPath returns the part of a path in a spec that the schema of a version has by name. The rest are names of
// maps, which come from data.
func (c *Conversions) writtenPath(path string) string {
	names := cue.ParsePath(path).Selectors()
	longest := 1
	for _, v := range c.meta.Versions {
		at, n := v.Spec, 1
		for n < len(names) {
			next, written := writtenField(at, names[n])
			if !written {
				break
			}
			at = next
			n++
		}
		longest = max(longest, n)
	}
	if len(names) < longest || names[0].String() != "spec" {
		return "spec"
	}
	return cue.MakePath(names[:longest]...).String()
}

// writtenField returns what a schema has at a name that it writes, or at the number of an element.
func writtenField(schema cue.Value, name cue.Selector) (cue.Value, bool) {
	if name.LabelType() == cue.IndexLabel {
		element := schema.LookupPath(cue.MakePath(cue.AnyIndex))
		return element, element.Exists()
	}
	if name.LabelType() != cue.StringLabel {
		return cue.Value{}, false
	}
	it, err := schema.Fields(cue.Optional(true), cue.Hidden(true))
	for err == nil && it.Next() {
		if s := it.Selector(); s.LabelType() == cue.StringLabel && s.Unquoted() == name.Unquoted() {
			return it.Value(), true
		}
	}
	return cue.Value{}, false
}
