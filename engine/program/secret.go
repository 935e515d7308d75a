package program

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// What a Secret holds must not reach a message: messages end up in the status of
// the custom resource, in events and in logs, which more people may read.

// hidden takes the place of what a message would show.
const hidden = "not shown, because it comes from a Secret"

// secretFields are the fields of a Secret that are secret.
var secretFields = []string{"data", "stringData"}

// withoutSecrets returns the faults of an object without the values that its
// messages show, if it is a Secret.
func withoutSecrets(object cue.Value, faults Faults) Faults {
	if stringOr(object.LookupPath(cue.MakePath(cue.Str("kind"))), "") != "Secret" {
		return faults
	}
	below := object.Path().String() + "."
	for i, f := range faults {
		field, _, _ := strings.Cut(strings.TrimPrefix(f.Path, below), ".")
		shows := strings.HasPrefix(f.Message, "conflicting values") || strings.HasPrefix(f.Message, invalidValue)
		if shows && slices.Contains(secretFields, field) {
			faults[i].Message = "invalid value (" + hidden + ")"
		}
	}
	return faults
}

// readsSecret reports whether an expression refers to what a Secret holds: one of
// the package's live objects, or one of its inputs.
func readsSecret(v cue.Value, depth int) bool {
	root, path := v.ReferencePath()
	sels := path.Selectors()
	if len(sels) > 0 {
		return isSecret(root, sels)
	}
	op, args := v.Expr()
	if op == cue.NoOp || depth == 0 {
		return false
	}
	return slices.ContainsFunc(args, func(a cue.Value) bool { return readsSecret(a, depth-1) })
}

func isSecret(root cue.Value, path []cue.Selector) bool {
	inside := slices.ContainsFunc(path, func(sel cue.Selector) bool {
		return sel.LabelType() == cue.StringLabel && slices.Contains(secretFields, sel.Unquoted())
	})
	if len(path) < 3 || !inside {
		return false
	}
	kind := cue.MakePath(path[0], path[1], cue.Str("kind")) // inputs.<name>
	if path[0] == cue.Str("live") {
		kind = cue.MakePath(cue.Str("components"), path[1], cue.Str("objects"), path[2], cue.Str("kind"))
	}
	return stringOr(root.LookupPath(kind), "") == "Secret"
}
