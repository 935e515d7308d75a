// Package fieldpath parses the field paths in the errors of an API server:
//
//	spec.template.spec.containers[0].image
//	spec.template.spec.containers[name="main"].image
//	metadata.labels[app]
//
// It is not the fieldpath package of structured-merge-diff, whose paths are those of managed
// fields and cannot be parsed from text.
//
//	for _, part := range fieldpath.Parse(path) { ... part.Lookup(value) ... }
package fieldpath

import (
	"fmt"
	"strconv"
	"strings"
)

// A Part is one step of a path: either the name of a field, or an element of a list or key of
// a map in brackets.
type Part struct {
	// Field is the name of a field, or "".
	Field string
	// Element is the text between brackets: an index, a key, or name="main".
	Element string
}

// Parse splits a path. It stops at the first part that it cannot parse.
func Parse(path string) []Part {
	var out []Part
	for path = strings.TrimPrefix(path, "."); path != ""; path = strings.TrimPrefix(path, ".") {
		if inner, rest, ok := bracket(path); ok {
			out, path = append(out, Part{Element: inner}), rest
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end == 0 {
			return out
		}
		out, path = append(out, Part{Field: path[:end]}), path[end:]
	}
	return out
}

// bracket returns the text between the brackets at the beginning of a path, and the rest.
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

// Index returns the index of an element of a list, and whether the part is an index.
func (p Part) Index() (int, bool) {
	i, err := strconv.Atoi(p.Element)
	return i, err == nil && i >= 0
}

// Key returns the first key of an element of a list with listType=map, and its value as text.
func (p Part) Key() (name, value string, ok bool) {
	name, value, ok = strings.Cut(p.Element, "=")
	if !ok {
		return "", "", false
	}
	if quoted, err := strconv.QuotedPrefix(value); err == nil {
		value, err = strconv.Unquote(quoted)
		return name, value, err == nil
	}
	value, _, _ = strings.Cut(value, ",")
	return name, value, true
}

// Name returns the name of a field, or the key of a map in brackets.
func (p Part) Name() string {
	if p.Field != "" {
		return p.Field
	}
	return p.Element
}

// Lookup returns the value at a path in a decoded object, and whether it exists. A nil object has none.
func Lookup(object map[string]any, path []Part) (any, bool) {
	at, exists := any(object), object != nil
	for _, part := range path {
		at, exists = part.Lookup(at)
	}
	return at, exists
}

// Lookup returns the member of a decoded JSON value that the part names, and whether it exists.
func (p Part) Lookup(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		out, ok := v[p.Name()]
		return out, ok
	case []any:
		if i, ok := p.Index(); ok {
			if i >= len(v) {
				return nil, false
			}
			return v[i], true
		}
		name, want, ok := p.Key()
		for _, item := range v {
			if m, isMap := item.(map[string]any); ok && isMap && fmt.Sprint(m[name]) == want {
				return item, true
			}
		}
	}
	return nil, false
}

// Remove removes a field from an object, and reports whether it existed. It does not remove
// elements of lists.
func Remove(object map[string]any, path string) bool {
	parts := Parse(path)
	if len(parts) == 0 {
		return false
	}
	var at any = object
	for _, part := range parts[:len(parts)-1] {
		next, ok := part.Lookup(at)
		if !ok {
			return false
		}
		at = next
	}
	m, ok := at.(map[string]any)
	last := parts[len(parts)-1].Name()
	if _, there := m[last]; !ok || !there {
		return false
	}
	delete(m, last)
	return true
}
