package ownership

import "unicode/utf8"

// Nearly each inventory is as Encode has made it, and is read at each reconcile. So it is read without a detour by JSON
// where that is certain to give the same. Whatever is odd in any way is left to the decoder, which says what is wrong.

// plainGroup returns a group as decodeGroup does, or false if its values are not just as Encode makes them.
func plainGroup(v any) (Group, bool) {
	fields, is := v.(map[string]any)
	if !is {
		return Group{}, false
	}
	var g Group
	for name, value := range fields {
		switch name {
		case "component":
			if g.Component, is = plainText(value); !is {
				return Group{}, false
			}
		case "dependsOn":
			if g.DependsOn, is = plainItems(value, plainText); !is {
				return Group{}, false
			}
		case "objects":
			if g.Objects, is = plainItems(value, plainEntry); !is {
				return Group{}, false
			}
		default:
			return Group{}, false
		}
	}
	return g, true
}

// plainText returns a text that is as it is in JSON.
func plainText(v any) (string, bool) {
	text, is := v.(string)
	return text, is && utf8.ValidString(text)
}

// plainItems returns the items of a list that has some.
func plainItems[T any](v any, item func(any) (T, bool)) ([]T, bool) {
	list, is := v.([]any)
	if !is || len(list) == 0 {
		return nil, false
	}
	out := make([]T, len(list))
	for i, v := range list {
		if out[i], is = item(v); !is {
			return nil, false
		}
	}
	return out, true
}

// plainEntry returns an entry as the decoder does, or false if its values are not just as Encode makes them.
func plainEntry(v any) (Entry, bool) {
	fields, is := v.(map[string]any)
	if !is {
		return Entry{}, false
	}
	var e Entry
	for name, value := range fields {
		switch value := value.(type) {
		case string:
			if !e.setText(name, value) || !utf8.ValidString(value) {
				return Entry{}, false
			}
		case bool:
			if !e.setFlag(name, value) {
				return Entry{}, false
			}
		default:
			return Entry{}, false
		}
	}
	return e, true
}

// setText sets a field that is a text, and reports whether there is one of that name.
func (e *Entry) setText(name, value string) bool {
	switch name {
	case "object":
		e.Object = value
	case "apiVersion":
		e.APIVersion = value
	case "kind":
		e.Kind = value
	case "namespace":
		e.Namespace = value
	case "name":
		e.Name = value
	case "digest":
		e.Digest = value
	case "uid":
		e.UIDPrefix = value
	case "content":
		e.Content = value
	case "ended":
		e.Ended = FinishState(value)
	case "last":
		e.Last = value
	default:
		return false
	}
	return true
}

// setFlag is setText for a field that is true or false.
func (e *Entry) setFlag(name string, value bool) bool {
	switch name {
	case "clusterScoped":
		e.ClusterScoped = value
	case "orphan":
		e.Orphan = value
	default:
		return false
	}
	return true
}
