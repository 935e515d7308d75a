package program

import (
	"strconv"
	"strings"

	"cuelang.org/go/cue"
)

// Locate returns where the author writes a field of an object, or the nearest field
// around it that is written; its zero value when none is. The path is one that an API
// server gives, such as spec.containers[0].image or spec.containers[name="web"].image.
//
// It evaluates the package, and is for what is wrong with an object.
func (p *Program) Locate(s Session, component, object, path string) (at Position) {
	defer func() {
		if recover() != nil { // as Evaluate does: see recovered
			at = Position{}
		}
	}()
	v := p.fill(p.filling(s)).LookupPath(cue.MakePath(cue.Str("components"), cue.Str(component), cue.Str("objects"), cue.Str(object)))
	for _, part := range pathParts(path) {
		next := part.in(v)
		if !next.Exists() {
			break
		}
		v = next
		if own := PositionOf(v); own.File != "" && !isContract(own.File) {
			at = own
		}
	}
	return at
}

// A pathPart is one step of a path: a field, or an element of a list.
type pathPart struct {
	field string
	// element is an index, or keys as in name="web",protocol="TCP".
	element string
}

// pathParts splits a path. What it does not understand ends it.
func pathParts(path string) []pathPart {
	var out []pathPart
	for path = strings.TrimPrefix(path, "."); path != ""; path = strings.TrimPrefix(path, ".") {
		if inner, rest, ok := bracket(path); ok {
			out, path = append(out, pathPart{element: inner}), rest
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end == 0 {
			return out
		}
		out, path = append(out, pathPart{field: path[:end]}), path[end:]
	}
	return out
}

// bracket returns what is between the brackets at the beginning of a path.
func bracket(path string) (inner, rest string, ok bool) {
	if !strings.HasPrefix(path, "[") {
		return "", "", false
	}
	quoted := false
	for i, c := range path {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return path[1:i], path[i+1:], true
		}
	}
	return "", "", false
}

// in returns the part of a value, which does not exist when there is none.
func (part pathPart) in(v cue.Value) cue.Value {
	if part.field != "" {
		return v.LookupPath(cue.MakePath(cue.Str(part.field)))
	}
	if i, err := strconv.Atoi(part.element); err == nil {
		return v.LookupPath(cue.MakePath(cue.Index(i)))
	}
	key, want, ok := strings.Cut(part.element, "=")
	want, err := strconv.Unquote(strings.SplitN(want, ",", 2)[0])
	items, listErr := v.List()
	for ok && err == nil && listErr == nil && items.Next() {
		if got, err := items.Value().LookupPath(cue.MakePath(cue.Str(key))).String(); err == nil && got == want {
			return items.Value()
		}
	}
	// A map's key may stand in brackets as well, as in metadata.labels[app].
	if strings.ContainsAny(part.element, "=\"") {
		return cue.Value{}
	}
	return v.LookupPath(cue.MakePath(cue.Str(part.element)))
}
