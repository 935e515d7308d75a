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
	"operetta.dev/engine/program/syntax"
)

// What a Secret holds must not reach a message: messages end up in the status of
// the custom resource, in events and in logs, which more people may read.
//
// Which value a message shows, and what that was made from, cannot be told from the
// expression: it goes through hidden fields, templates, comprehensions and functions.
// So it is not asked. The package is evaluated a second time with other values in the
// place of all secret ones, and what that evaluation says as well cannot come from a
// Secret. Of everything else only position and path are shown. Whatever is overlooked
// thus shows less and never more.

// hidden takes the place of what a message would show.
const hidden = "not shown, because it comes from a Secret"

// hiddenValue is the message of a fault of which only position and path are shown.
const hiddenValue = fault.InvalidMessage + " (" + hidden + ")"

// secretFields are the fields of a Secret that are secret.
var secretFields = syntax.SecretFields

// lastApplied is where kubectl keeps the whole content of an object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// isSecret reports whether an object holds secrets. One that does not say what it is
// counts as one.
func isSecret(object map[string]any) bool {
	kind := object["kind"]
	return kind == secretKind || kind == nil || kind == ""
}

const secretKind = syntax.SecretKind

// blind returns a session with other values in the place of the secret ones, and
// whether there are any: those of Secrets that the package reads or owns, and those of
// the spec that it makes Secrets of.
func (p *Program) blind(s Session, r Rollout) (Session, bool) {
	b := &blinder{}
	out := s.withObjects(func(component, name string, object map[string]any) map[string]any {
		if object["kind"] == nil && rendersOther(r, component, name) {
			return object // a person has written only what matters of it
		}
		return b.object(object)
	}, b.object)
	for _, path := range p.secretSpec(r) {
		out.CR, _ = b.at(out.CR, path[1:], turned).(map[string]any)
	}
	return out, b.changed
}

// rendersOther reports whether an object is known to be rendered as something else than a
// Secret.
func rendersOther(r Rollout, component, object string) bool {
	for _, c := range r.Components {
		for _, o := range c.Objects {
			if c.Name == component && o.Name == object {
				return o.Identity.Kind != "" && o.Identity.Kind != secretKind
			}
		}
	}
	return false
}

// A blinder puts other values in the place of secret ones, in copies.
type blinder struct{ changed bool }

// object returns an object without what it holds that is secret.
func (b *blinder) object(object map[string]any) map[string]any {
	if !isSecret(object) {
		return object
	}
	out := object
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

// turned returns a text of the same form in which every letter and digit is another
// one, so that what a schema asks of its form still holds.
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

// smallestSecret is the smallest number that is taken for a secret, as by package redact:
// a smaller one may be a port or a count, and another one in its place may be invalid.
const smallestSecret = 100_000

// turnedNumber returns a number all of whose digits are other ones, as far as it may be
// a secret.
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

// rings are what letters and digits are replaced within: hexadecimal ones stay that.
var rings = []string{"0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ"}

// other returns a text that is turned and of another length: how long a secret is, is
// nobody's business either. A number stays one, and becomes no larger by it: it may
// say how often something is repeated.
func other(text string) string {
	switch {
	case strings.Trim(text, "0123456789") != "":
		return turned(text) + "x"
	case len(text) > 1:
		return turned(text)[1:]
	}
	return turned(text)
}

// encodedOther returns other of a text that is encoded as in the data of a Secret.
func encodedOther(text string) string {
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return other(text)
	}
	return base64.StdEncoding.EncodeToString([]byte(other(string(plain))))
}

// An evaluation is what came of evaluating a session.
type evaluation struct {
	rollout Rollout
	err     error
	// root is the package with the session in it.
	root cue.Value
}

// A witness tells what may be said of one evaluation by what another one has said that
// has not seen any secret.
type witness struct {
	evaluation
	// literals are the secrets that the package itself has written: no evaluation is
	// without them.
	literals []string
}

// vouch returns a rollout with what the witness has said as well, and without the rest.
func (w witness) vouch(r Rollout) Rollout {
	said := w.rollout
	r.Invalid = w.faults(r.Invalid, said.Invalid)
	r.Misconfigured = w.faults(r.Misconfigured, said.Misconfigured)
	r.StatusFaults = w.faults(r.StatusFaults, said.StatusFaults)
	for i, in := range r.Inputs {
		same := func(o Input) bool { return o.Name == in.Name && o.Missing == in.Missing }
		if in.Missing != "" && !w.said(in.Missing, slices.ContainsFunc(said.Inputs, same)) {
			r.Inputs[i].Missing = hidden
		}
	}
	known := map[string]*Component{}
	for c := range said.all() {
		known[c.Name] = c
	}
	for c := range r.all() {
		w.component(c, cmp.Or(known[c.Name], &Component{}), r.stray)
	}
	return r
}

// vouchError returns an error with what the witness has said as well.
func (w witness) vouchError(err error) error {
	if undecided, ok := errors.AsType[*undecidedError](err); ok {
		other, _ := errors.AsType[*undecidedError](w.err)
		var said fault.Faults
		if other != nil {
			said = other.faults
		}
		return &undecidedError{undecided.pkg, w.faults(undecided.faults, said)}
	}
	if panicked, ok := errors.AsType[*PanicError](err); ok && (w.err == nil || w.err.Error() != err.Error()) {
		return &PanicError{Package: panicked.Package, Cause: hidden, Stack: panicked.Stack}
	}
	return err
}

// component hides what the witness does not say of a component. Predicates lose their names as
// well: a name may be computed.
func (w witness) component(c, said *Component, stray func(Edge) bool) {
	if c.When.Detail != "" && !w.said(c.When.Detail, c.When.Detail == said.When.Detail) {
		c.When.Detail = withhold(c.When.Detail, said.When.Detail)
	}
	c.Faults = w.faults(c.Faults, said.Faults)
	for i, text := range c.Missing {
		if !w.said(text, slices.Contains(said.Missing, text)) {
			c.Missing[i] = withhold(text, said.Missing...)
		}
	}
	details := map[conditionID]string{}
	for id, p := range said.conditions() {
		if _, twice := details[id]; !twice {
			details[id] = p.Detail
		}
	}
	for id, p := range c.conditions() {
		detail, known := details[id]
		if !known {
			p.Name = syntax.ComputedName
		}
		if p.Detail != "" && !w.said(p.Detail, known && detail == p.Detail) {
			p.Detail = hidden
		}
	}
	for i, e := range c.Edges {
		if stray(e) && !slices.ContainsFunc(said.Edges, func(o Edge) bool { return o.To == e.To }) {
			c.Edges[i].To = syntax.ComputedName // there is no such component by either name
		}
	}
}

// faults returns faults without the messages that the witness does not know.
func (w witness) faults(all, said fault.Faults) fault.Faults {
	for i, f := range all {
		if !w.said(f.Message+f.Hint, slices.Contains(said, f)) {
			all[i] = fault.Fault{Code: f.Code, Position: f.Position, Path: w.path(f.Path), Message: hiddenValue}
		}
	}
	return all
}

// path returns a path as far as the witness has it: a label may be computed.
func (w witness) path(path string) string {
	sels := cue.ParsePath(path).Selectors()
	for n := len(sels); n > 0; n-- {
		known := cue.MakePath(sels[:n]...)
		inCR := cue.MakePath(slices.Concat(crPath.Selectors(), sels[:n])...) // an invalid resource has paths of its own
		if w.root.LookupPath(known).Exists() || w.root.LookupPath(inCR).Exists() {
			return known.String()
		}
	}
	return ""
}

// said reports whether a text that the witness knows may be shown: not if it quotes
// what the package itself has written into a Secret.
func (w witness) said(text string, known bool) bool {
	return known && !quotes(text, w.literals)
}

// quotes reports whether one of the quoted parts of a text has one of some values:
// short ones as a whole, others anywhere.
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

// shortest is how long a value is at least that is looked for within others.
const shortest = 4

// withhold returns a text with only what the witness has said as well: how it begins,
// up to a colon, and the position at its end.
func withhold(text string, said ...string) string {
	begins := ""
	for _, other := range said {
		for i := len(begins); i < min(len(text), len(other)) && text[i] == other[i]; i++ {
			if strings.HasSuffix(text[:i+1], ": ") {
				begins = text[:i+1]
			}
		}
	}
	return begins + hidden + positionBehind.FindString(text)
}

// positionBehind is what Position.Behind puts behind a text.
var positionBehind = regexp.MustCompile(` \([^ ()"]+\.cue:[0-9]+\)$`)

// speaks reports whether an evaluation has anything to say that could show a value.
func (e evaluation) speaks() bool {
	r := e.rollout
	for c := range r.all() {
		if c.speaks() || slices.ContainsFunc(c.Edges, r.stray) {
			return true
		}
	}
	return e.err != nil || len(r.Invalid)+len(r.Misconfigured)+len(r.StatusFaults) > 0 ||
		slices.ContainsFunc(r.Inputs, func(i Input) bool { return i.Missing != "" })
}

// stray reports whether an edge leads to a computed name that no component has, so that
// a message has to say it.
func (r Rollout) stray(e Edge) bool {
	return e.Computed && !slices.ContainsFunc(r.Components, func(c Component) bool { return c.Name == e.To })
}

// speaks reports whether a component has anything to say. A predicate has when it is bad
// news: then its name is said, and its condition.
func (c *Component) speaks() bool {
	for id, p := range c.conditions() {
		if good := map[bool]Verdict{true: False, false: True}[id.part == "failed"]; p.Detail != "" || p.Verdict != good {
			return true
		}
	}
	return c.When.Detail != "" || len(c.Faults)+len(c.Missing) > 0
}
