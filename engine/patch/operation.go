package patch

import (
	"encoding/json"
	"regexp"
)

// An Operation is one operation of a JSON patch (RFC 6902).
type Operation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	// From is the path from which move and copy take a value.
	From string `json:"from,omitempty"`
	// Value is the value of add, replace and test, as JSON, or nil.
	Value json.RawMessage `json:"value,omitempty"`
}

// pointer matches a JSON pointer (RFC 6901) to a field of an object, but not the empty pointer
// to the whole object.
var pointer = regexp.MustCompile(`^(/([^~/]|~[01])*)+$`)

// invalid returns why an operation is invalid for every object, or "".
func (o Operation) invalid() string {
	if !pointer.MatchString(o.Path) {
		return "path must be a JSON pointer such as /spec/replicas"
	}
	switch o.Op {
	case "add", "replace", "test":
		if o.Value == nil {
			return o.Op + " needs a value"
		}
	case "move", "copy":
		if !pointer.MatchString(o.From) {
			return o.Op + " needs a from, which must be a JSON pointer such as /spec/replicas"
		}
	case "remove":
	default:
		return "unknown operation; use add, remove, replace, move, copy or test"
	}
	return ""
}

// revealsContent reports whether an operation can reveal the previous content of a field.
func (o Operation) revealsContent() bool { return o.Op == "test" || o.Op == "move" || o.Op == "copy" }
