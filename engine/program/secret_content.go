package program

import (
	"encoding/base64"
	"slices"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program/syntax"
)

// withoutContent returns the faults of an object without what their messages show of
// its content, if it is a Secret or may be one.
func withoutContent(of cue.Value, faults fault.Faults) fault.Faults {
	if kind, err := Lookup(of, "kind").String(); err == nil && !object.MayBeSecret(kind) {
		return faults
	}
	at := len(of.Path().Selectors())
	for i, f := range faults {
		if below := cue.ParsePath(f.Path).Selectors(); f.Code != fault.UnknownField && len(below) > at && isContent(below[at]) {
			faults[i].Message, faults[i].Hint = hiddenValue, ""
		}
	}
	return faults
}

func isContent(sel cue.Selector) bool {
	return sel.LabelType() == cue.StringLabel && slices.Contains(secretFields, sel.Unquoted())
}

// withoutLiterals returns the faults of a package without what they show of its Secrets.
func (s *Secrets) withoutLiterals(faults fault.Faults) fault.Faults {
	for i, f := range faults {
		sels := cue.ParsePath(f.Path).Selectors()
		inObject := len(sels) > 4 && sels[0] == cue.Str("components") && sels[2] == cue.Str("objects")
		if inObject {
			faults[i] = withoutContent(s.static.value.LookupPath(cue.MakePath(sels[:4]...)), fault.Faults{f})[0]
		}
		if quotes(f.Message, s.literals) {
			faults[i].Message, faults[i].Hint = hiddenValue, ""
		}
	}
	return faults
}

// secretsIn returns the values in the rendered Secrets, verbatim and decoded.
func secretsIn(r Rollout) []string {
	var out []string
	for _, o := range r.secrets() {
		for _, field := range secretFields {
			content, _ := o.object.Manifest[field].(map[string]any)
			for _, v := range content {
				value := text(v)
				plain, err := base64.StdEncoding.DecodeString(value)
				if value != "" {
					out = append(out, value)
				}
				if err == nil && len(plain) > 0 {
					out = append(out, string(plain))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ownSecret is a Secret that a package renders.
type ownSecret struct {
	component string
	object    Object
}

// secrets returns the Secrets of a rollout, and what may turn out to be one.
func (r Rollout) secrets() []ownSecret {
	var out []ownSecret
	for _, c := range r.All() {
		for _, o := range c.Objects {
			if object.MayBeSecret(o.Identity.Kind) {
				out = append(out, ownSecret{c.Name, o})
			}
		}
	}
	return out
}

// spec returns the fields of the custom resource that the package makes Secrets
// of: by its text as a whole, and for the Secrets that an evaluation shows.
func (s *Secrets) spec(r Rollout) [][]string {
	out := slices.Clone(s.index.Secrets().Spec())
	for _, own := range r.secrets() {
		out = append(out, s.index.Secrets().SpecOf(own.component, own.object.Name)...)
	}
	return syntax.DistinctPaths(out)
}
