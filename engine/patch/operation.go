package patch

import (
	"encoding/json"
	"regexp"
)

// An Operation is one operation of a JSON patch (RFC 6902).
type Operation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	// From is where move and copy take a value from.
	From string `json:"from,omitempty"`
	// Value is the value of add, replace and test, as JSON; nil is none.
	Value json.RawMessage `json:"value,omitempty"`
}

// pointer is a JSON pointer (RFC 6901) to something within an object. The object as a
// whole is never meant.
var pointer = regexp.MustCompile(`^(/([^~/]|~[01])*)+$`)

// invalid returns what is wrong with an operation, whatever it is about; "" is nothing.
func (o Operation) invalid() string {
	if !pointer.MatchString(o.Path) {
		return "path has to be a JSON pointer such as /spec/replicas"
	}
	switch o.Op {
	case "add", "replace", "test":
		if o.Value == nil {
			return o.Op + " needs a value"
		}
	case "move", "copy":
		if !pointer.MatchString(o.From) {
			return o.Op + " needs a from, which has to be a JSON pointer such as /spec/replicas"
		}
	case "remove":
	default:
		return "there is no such operation; there are add, remove, replace, move, copy and test"
	}
	return ""
}

// reads reports whether an operation shows what was there before, or takes it elsewhere.
func (o Operation) reads() bool { return o.Op == "test" || o.Op == "move" || o.Op == "copy" }
