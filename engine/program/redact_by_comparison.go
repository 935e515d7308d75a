package program

import (
	"cmp"
	"encoding/base64"
	"errors"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program/syntax"
)

// The content of a Secret must not reach a message: messages end up in the status of the custom
// resource, in events and in logs, which more people may read.
//
// An expression does not show which value a message contains, nor where that value comes from: it
// passes through hidden fields, templates, comprehensions and functions. So the package is
// evaluated a second time, with other values in place of all secret ones. A message that both
// evaluations have cannot come from a Secret. Of all other messages only the position and the
// path are shown. A mistake in this can hide too much, but never show a secret.

// hidden replaces a text that may contain a secret.
const hidden = "not shown, because it comes from a Secret"

// hiddenValue is the message of a fault whose own message may contain a secret.
const hiddenValue = fault.InvalidMessage + " (" + hidden + ")"

// secretFields are the fields of a Secret that are secret.
var secretFields = syntax.SecretFields

// lastApplied is where kubectl keeps the whole content of an object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// blind returns a session with other values in place of the secret ones, and whether there are
// any: the content of Secrets that the package reads or owns, and the fields of the spec that it
// renders Secrets from.
func (s *Secrets) blind(session Session, r Rollout) (Session, bool) {
	b := &blinder{}
	out := session.withObjects(func(component, name string, object map[string]any) map[string]any {
		if object["kind"] == nil && rendersOther(r, component, name) {
			return object // given by hand, as for render, and without a kind
		}
		return b.object(object)
	}, b.object)
	for _, path := range s.spec(r) {
		out.CR, _ = b.at(out.CR, path[1:], turned).(map[string]any)
	}
	return out, b.changed
}

// rendersOther reports whether an object is known to be rendered as a kind other than Secret.
func rendersOther(r Rollout, component, name string) bool {
	for _, c := range r.Components {
		for _, o := range c.Objects {
			if c.Name == component && o.Name == name {
				return !object.MayBeSecret(o.Identity.Kind)
			}
		}
	}
	return false
}

// A blinder replaces secret values by others, in copies.
type blinder struct{ changed bool }

// object returns an object with other values in place of its secret ones.
func (b *blinder) object(content map[string]any) map[string]any {
	if !object.MayBeSecretIn(content) {
		return content
	}
	out := content
	for _, field := range secretFields {
		of := encodedOther
		if field == "stringData" {
			of = other
		}
		out, _ = b.at(out, []string{field}, of).(map[string]any)
	}
	out, _ = b.at(out, []string{"metadata", "annotations", lastApplied}, other).(map[string]any)
	return out
}

// at returns data with other texts at a path and below it.
func (b *blinder) at(data any, path []string, of func(string) string) any {
	switch v := data.(type) {
	case string:
		if len(path) > 0 || v == "" {
			return v
		}
		b.changed = true
		return of(v)
	case int64:
		if other := turnedNumber(v); len(path) == 0 && other != v {
			b.changed = true
			return other
		}
	case float64: // what has passed through encoding/json
		if other := turnedNumber(int64(v)); len(path) == 0 && v == math.Trunc(v) && math.Abs(v) < 1<<53 && other != int64(v) {
			b.changed = true
			return float64(other)
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = b.at(e, nil, of) // a path has no places in a list
		}
		return out
	case map[string]any:
		out := maps.Clone(v)
		for key, inner := range v {
			switch {
			case len(path) == 0:
				out[key] = b.at(inner, nil, of)
			case path[0] == key:
				out[key] = b.at(inner, path[1:], of)
			}
		}
		return out
	}
	return data
}

// turned returns a text of the same form with every letter and digit replaced by another one, so
// that it still matches a pattern in the schema.
func turned(text string) string {
	return strings.Map(func(r rune) rune {
		for _, ring := range rings {
			if at := strings.IndexRune(ring, r); at >= 0 {
				return rune(ring[(at+1)%len(ring)])
			}
		}
		return r
	}, text)
}

// smallestSecret is the smallest number that counts as a secret, as in package redact. A smaller
// one may be a port or a count, and its replacement may be invalid.
const smallestSecret = 100_000

// turnedNumber returns a number with all digits replaced, if it may be a secret.
func turnedNumber(n int64) int64 {
	if n > -smallestSecret && n < smallestSecret {
		return n
	}
	out, err := strconv.ParseInt(turned(strconv.FormatInt(n, 10)), 10, 64)
	if err != nil {
		return smallestSecret // it is too large
	}
	return out
}

// rings are the groups within which characters are replaced: hexadecimal digits stay so.
var rings = []string{"0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ"}

// other returns a turned text of another length, because the length of a secret is secret, too.
// A number becomes a shorter number, and never a longer one: it may be a count of repetitions.
func other(text string) string {
	switch {
	case strings.Trim(text, "0123456789") != "":
		return turned(text) + "x"
	case len(text) > 1:
		return turned(text)[1:]
	}
	return turned(text)
}

// encodedOther returns other for a text in base64, as in the data of a Secret.
func encodedOther(text string) string {
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return other(text)
	}
	return base64.StdEncoding.EncodeToString([]byte(other(string(plain))))
}

// An evaluation is the result of evaluating a session.
type evaluation struct {
	rollout Rollout
	err     error
	// root is the package with the session in it.
	root cue.Value
}

// A blindEvaluation is an evaluation with other values in place of the secret ones. Only the
// messages of another evaluation that it has as well may be shown.
type blindEvaluation struct {
	evaluation
	// literals are the secrets that are written in the package itself, which every
	// evaluation sees.
	literals []string
}

// keepSharedMessages returns a rollout with only the messages that the blind evaluation has, too.
func (b blindEvaluation) keepSharedMessages(r Rollout) Rollout {
	blind := b.rollout
	r.Invalid = b.faults(r.Invalid, blind.Invalid)
	r.Misconfigured = b.faults(r.Misconfigured, blind.Misconfigured)
	r.StatusFaults = b.faults(r.StatusFaults, blind.StatusFaults)
	for i, in := range r.Inputs {
		same := func(o Input) bool { return o.Name == in.Name && o.Missing == in.Missing }
		if in.Missing != "" && !b.mayShow(in.Missing, slices.ContainsFunc(blind.Inputs, same)) {
			r.Inputs[i].Missing = hidden
		}
	}
	known := map[string]*Component{}
	for _, c := range blind.All() {
		known[c.Name] = c
	}
	for _, c := range r.All() {
		b.component(c, cmp.Or(known[c.Name], &Component{}), r.leadsToUnknownName)
	}
	return r
}

// keepSharedError returns an error with only the messages that the blind evaluation has as well.
func (b blindEvaluation) keepSharedError(err error) error {
	if undecided, ok := errors.AsType[*UndecidedError](err); ok {
		other, _ := errors.AsType[*UndecidedError](b.err)
		var blind fault.Faults
		if other != nil {
			blind = other.Faults
		}
		return &UndecidedError{undecided.Package, b.faults(undecided.Faults, blind)}
	}
	if panicked, ok := errors.AsType[*PanicError](err); ok && (b.err == nil || b.err.Error() != err.Error()) {
		return &PanicError{Package: panicked.Package, Cause: hidden, Stack: panicked.Stack}
	}
	return err
}

// component hides the messages of a component, and the names of its predicates, that the blind
// evaluation does not have. A name may be computed.
func (b blindEvaluation) component(c, blind *Component, leadsToUnknownName func(Edge) bool) {
	if c.When.Detail != "" && !b.mayShow(c.When.Detail, c.When.Detail == blind.When.Detail) {
		c.When.Detail = withhold(c.When.Detail, blind.When.Detail)
	}
	c.Faults = b.faults(c.Faults, blind.Faults)
	for i, text := range c.Missing {
		if !b.mayShow(text, slices.Contains(blind.Missing, text)) {
			c.Missing[i], c.MissingAt[i] = withhold(text, blind.Missing...), "" // a label may be computed
		}
	}
	details := map[conditionID]string{}
	for id, p := range blind.conditions() {
		if _, twice := details[id]; !twice {
			details[id] = p.Detail
		}
	}
	for id, p := range c.conditions() {
		detail, known := details[id]
		if !known {
			p.Name = syntax.ComputedName
		}
		if p.Detail != "" && !b.mayShow(p.Detail, known && detail == p.Detail) {
			p.Detail = hidden
		}
	}
	for i, e := range c.Edges {
		if leadsToUnknownName(e) && !slices.ContainsFunc(blind.Edges, func(o Edge) bool { return o.To == e.To }) {
			c.Edges[i].To = syntax.ComputedName // neither name is that of a component
		}
	}
}

// faults hides the messages of faults that the blind evaluation does not have.
func (b blindEvaluation) faults(all, blind fault.Faults) fault.Faults {
	for i, f := range all {
		if !b.mayShow(f.Message+f.Hint, slices.Contains(blind, f)) {
			all[i] = fault.Fault{Code: f.Code, Position: f.Position, Path: b.path(f.Path), Message: hiddenValue}
		}
	}
	return all
}

// path returns the part of a path that the blind evaluation has, because a label may be computed.
func (b blindEvaluation) path(path string) string {
	sels := cue.ParsePath(path).Selectors()
	for n := len(sels); n > 0; n-- {
		known := cue.MakePath(sels[:n]...)
		inCR := cue.MakePath(slices.Concat([]cue.Selector{cue.Str("cr")}, sels[:n])...) // an invalid resource has paths of its own
		if b.root.LookupPath(known).Exists() || b.root.LookupPath(inCR).Exists() {
			return known.String()
		}
	}
	return ""
}

// mayShow reports whether a text may be shown: the blind evaluation has it, and it quotes nothing
// that the package itself writes into a Secret.
func (b blindEvaluation) mayShow(text string, known bool) bool {
	return known && !quotes(text, b.literals)
}

// quotes reports whether a quoted part of a text equals one of the values, or contains a value
// that is not short.
func quotes(text string, values []string) bool {
	if len(values) == 0 || !strings.Contains(text, `"`) {
		return false
	}
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 && slices.ContainsFunc(values, func(v string) bool {
			return part == v || len(v) >= shortest && strings.Contains(part, v)
		}) {
			return true
		}
	}
	return false
}

// shortest is the minimum length of a value that is searched within others.
const shortest = 4

// withhold returns a text with its beginning, up to the last colon that a text of the blind
// evaluation shares, and its position. The rest is hidden.
func withhold(text string, blind ...string) string {
	begins := ""
	for _, other := range blind {
		for i := len(begins); i < min(len(text), len(other)) && text[i] == other[i]; i++ {
			if strings.HasSuffix(text[:i+1], ": ") {
				begins = text[:i+1]
			}
		}
	}
	return begins + hidden + positionBehind.FindString(text)
}

// positionBehind matches the position that Position.InBrackets returns at the end of a text.
var positionBehind = regexp.MustCompile(` \([^ ()"]+\.cue:[0-9]+\)$`)

// hasMessages reports whether an evaluation has a message that could show a value.
func (e evaluation) hasMessages() bool {
	r := e.rollout
	for _, c := range r.All() {
		if c.hasMessages() || slices.ContainsFunc(c.Edges, r.leadsToUnknownName) {
			return true
		}
	}
	return e.err != nil || len(r.Invalid)+len(r.Misconfigured)+len(r.StatusFaults) > 0 ||
		slices.ContainsFunc(r.Inputs, func(i Input) bool { return i.Missing != "" })
}

// leadsToUnknownName reports whether an edge leads to a computed name that no component has. A
// message would show that name.
func (r Rollout) leadsToUnknownName(e Edge) bool {
	return e.Computed && !slices.ContainsFunc(r.Components, func(c Component) bool { return c.Name == e.To })
}

// hasMessages reports whether a component has a message. A predicate causes one, with its name and
// condition, unless its verdict is the desired one (verify true, failed false).
func (c *Component) hasMessages() bool {
	for id, p := range c.conditions() {
		if desired := map[bool]Verdict{true: False, false: True}[id.part == "failed"]; p.Detail != "" || p.Verdict != desired {
			return true
		}
	}
	return c.When.Detail != "" || len(c.Faults)+len(c.Missing) > 0
}
