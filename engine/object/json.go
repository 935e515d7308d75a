package object

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// AppendJSON appends data as encoding/json writes it. Of unstructured content, which is nearly all that has a
// digest, it copies nothing; encoding/json copies each field of a map.
func AppendJSON(out []byte, data any) ([]byte, error) {
	switch v := data.(type) {
	case map[string]any:
		if v != nil {
			return appendFields(out, v)
		}
	case []any:
		if v != nil {
			return appendElements(out, v)
		}
	case string:
		return appendText(out, v), nil
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	}
	text, err := json.Marshal(data)
	return append(out, text...), err
}

func appendFields(out []byte, fields map[string]any) (_ []byte, err error) {
	out = append(out, '{')
	var room [16]string // for most, so that they take no allocation
	names := slices.AppendSeq(room[:0], maps.Keys(fields))
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = AppendJSON(append(appendText(out, name), ':'), fields[name]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendElements(out []byte, elements []any) (_ []byte, err error) {
	out = append(out, '[')
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = AppendJSON(out, e); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func appendText(out []byte, text string) []byte {
	if isPlain(text) {
		return append(append(append(out, '"'), text...), '"')
	}
	encoded, _ := json.Marshal(text) // it never errors for a text
	return append(out, encoded...)
}

// isPlain reports whether encoding/json has a text as it is.
func isPlain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// Texts returns texts as unstructured content has them.
func Texts(all []string) []any {
	out := make([]any, len(all))
	for i, text := range all {
		out[i] = text
	}
	return out
}
