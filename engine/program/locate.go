package program

import (
	"cuelang.org/go/cue"
	"operetta.dev/engine/fieldpath"

	"operetta.dev/engine/fault"
)

// Locate returns where the author wrote a field of an object, or else the nearest field
// around it; the zero value has no position. The path is in the form of an API server, such as
// spec.containers[0].image or spec.containers[name="web"].image.
//
// It evaluates the package, which costs as much as a reconcile.
func (p *Program) Locate(s Session, component, object, path string) (at fault.Position) {
	defer func() {
		if recover() != nil { // as Evaluate does: see recovered
			at = fault.Position{}
		}
	}()
	v := p.compiled.fill(p.views.filling(s)).LookupPath(cue.MakePath(cue.Str("components"), cue.Str(component), cue.Str("objects"), cue.Str(object)))
	for _, part := range fieldpath.Parse(path) {
		next := partOf(v, part)
		if !next.Exists() {
			break
		}
		v = next
		if own := PositionOf(v); own.File != "" && !own.IsContract() {
			at = own
		}
	}
	return at
}

// partOf returns a part of a value, which does not exist when there is none.
func partOf(v cue.Value, part fieldpath.Part) cue.Value {
	if i, ok := part.Index(); ok {
		return v.LookupPath(cue.MakePath(cue.Index(i)))
	}
	name, want, ok := part.Key()
	items, err := v.List()
	if !ok || err != nil {
		return Lookup(v, part.Name())
	}
	for items.Next() {
		if got, err := Lookup(items.Value(), name).String(); err == nil && got == want {
			return items.Value()
		}
	}
	return cue.Value{}
}
