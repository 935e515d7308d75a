package compile

import (
	"reflect"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// A componentTranslator translates one component.
type componentTranslator struct {
	*rolloutTranslator
	want, held *program.Component
	value      cue.Value
	out        *component
}

func (t *componentTranslator) translate() error {
	if !t.value.Exists() || len(t.held.Edges) != len(t.want.Edges) || len(t.held.Objects) != len(t.want.Objects) {
		return t.takeWhole()
	}
	for _, part := range []func() error{t.settings, t.when, t.conditions, t.edges, t.objects} {
		if err := part(); err != nil {
			return err
		}
	}
	return t.missing()
}

// part returns a part of the component, which may not exist.
func (t *componentTranslator) part(path ...string) cue.Value {
	if !t.value.Exists() {
		return cue.Value{}
	}
	return program.Lookup(t.value, path...)
}

// takeWhole takes a component that may not exist yet, and has nothing to translate.
func (t *componentTranslator) takeWhole() error {
	if t.value.Exists() || t.held.When.Verdict != t.want.When.Verdict || textOf(t.held.When.Detail) != textOf(t.want.When.Detail) ||
		!slices.Equal(textsOf(t.held.Missing), textsOf(t.want.Missing)) || len(t.want.Objects) > 0 || len(t.held.Edges) != len(t.want.Edges) {
		return t.undecided(t.value, nil)
	}
	return nil
}

// settings compares what has to be the same in all of a shape.
func (t *componentTranslator) settings() error {
	if v := t.part("unserved"); v.Exists() && t.rests(v) {
		return t.fail(v, "values decide about unserved")
	}
	if v := t.part("timeout"); v.Exists() && t.rests(v) {
		n, err := t.node(v)
		if err != nil {
			return err
		}
		t.out.Timeout = n
	}
	if t.out.Timeout == nil && t.held.Timeout != t.want.Timeout || t.held.Unserved != t.want.Unserved {
		return t.undecided(t.value, nil)
	}
	return nil
}

// when translates whether the component exists.
func (t *componentTranslator) when() error {
	v := t.part("when")
	was := program.Predicate{Name: "when", Verdict: t.want.When.Verdict, Detail: t.want.When.Detail}
	held := program.Predicate{Name: "when", Verdict: t.held.When.Verdict, Detail: t.held.When.Detail}
	p, err := t.predicate(t.want.Name, v, "when", was, held)
	if err == nil && p.Value != nil {
		t.out.When = &p
	}
	return err
}

// conditions translates the predicates.
func (t *componentTranslator) conditions() error {
	for _, part := range []struct {
		name       string
		want, held []program.Predicate
		into       *[]predicate
	}{{"requires", t.want.Requires, t.held.Requires, &t.out.Requires}, {"verify", t.want.Verify, t.held.Verify, &t.out.Verify}, {"failed", t.want.Failed, t.held.Failed, &t.out.Failed}} {
		if len(part.want) != len(part.held) {
			return t.undecided(t.part(part.name), nil)
		}
		for i, was := range part.want {
			if part.held[i].Name != was.Name {
				return t.undecided(t.part(part.name), nil)
			}
			p, err := t.predicate(t.want.Name, t.part(part.name, was.Name), part.name, was, part.held[i])
			if err != nil {
				return err
			}
			*part.into = append(*part.into, p)
		}
	}
	return nil
}

// edges translates the checks of the edges, and compares the rest of them.
func (t *componentTranslator) edges() error {
	for i, was := range t.want.Edges {
		held := t.held.Edges[i]
		v := t.part("dependsOn", was.To)
		var p predicate
		if was.Check != nil && held.Check != nil {
			var err error
			if p, err = t.predicate(t.want.Name, program.Lookup(v, "check"), "check", *was.Check, *held.Check); err != nil {
				return err
			}
		}
		t.out.Checks = append(t.out.Checks, p)
		for _, name := range []string{"until", "optional"} {
			if field := program.Lookup(v, name); v.Exists() && field.Exists() && t.rests(field) {
				return t.fail(field, "values decide about an edge")
			}
		}
		held.Position = was.Position
		if held.Check != nil && was.Check != nil {
			held.Check = was.Check
		}
		if held != was {
			return t.undecided(t.part("dependsOn"), nil)
		}
	}
	if !slices.ContainsFunc(t.out.Checks, func(p predicate) bool { return p.Value != nil }) {
		t.out.Checks = nil
	}
	return nil
}

// objects translates the objects.
func (t *componentTranslator) objects() error {
	for i, o := range t.want.Objects {
		held := t.held.Objects[i]
		v := t.part("objects", o.Name)
		if p := t.part("policy", o.Name); p.Exists() && t.rests(p) {
			return t.fail(p, "values decide about a policy")
		}
		if held.Name != o.Name || held.Policy != o.Policy || !reflect.DeepEqual(held.Patchable, o.Patchable) ||
			!reflect.DeepEqual(held.Secrets, o.Secrets) || held.NamedBySecret != o.NamedBySecret {
			return t.undecided(t.part("objects"), nil)
		}
		for _, name := range []string{"apiVersion", "kind"} {
			if field := program.Lookup(v, name); t.rests(field) {
				return t.fail(field, "values decide about the kind of an object")
			}
		}
		var err error
		if o.Manifest != nil {
			t.out.Objects[i].Content, err = t.node(v)
		} else {
			err = t.incomplete(v, o, &t.out.Objects[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// incomplete translates the identity of an object that is not complete, and guards what of it is.
func (t *componentTranslator) incomplete(v cue.Value, o program.Object, into *manifest) error {
	for _, part := range []struct {
		name, is string
		into     **template.Node
	}{{"namespace", o.Identity.Namespace, &into.Namespace}, {"name", o.Identity.Name, &into.Name}} {
		field := program.Lookup(v, "metadata", part.name)
		if part.is == "" || !t.rests(field) {
			continue
		}
		n, err := t.node(field)
		if err != nil {
			return err
		}
		*part.into = n
	}
	return t.partial(v, t.guardComplete)
}

// sameAwaited reports whether an evaluation with holes waits for the same as one of the session. What
// is missing in a let is missing in the field that it became, and in the session where it is used.
func sameAwaited(held, want awaited) bool {
	return held == want || isInLet(held.at) && held.withoutPath() == want.withoutPath()
}

// awaited is a value that a component waits for.
type awaited struct{ text, at string }

// awaitedBy returns the values that a component waits for, in the words for a session.
func awaitedBy(c *program.Component) []awaited {
	out := make([]awaited, len(c.Missing))
	for i, text := range c.Missing {
		out[i].text = textOf(text)
		if i < len(c.MissingAt) { // a component that was made up may have messages alone
			out[i].at = textOf(c.MissingAt[i])
		}
	}
	return out
}

// withoutPath returns what is said of the value.
func (a awaited) withoutPath() string { return strings.TrimPrefix(a.text, a.at+": ") }

// missing compares what the component waits for.
func (t *componentTranslator) missing() error {
	held := awaitedBy(t.held)
	for i, want := range awaitedBy(t.want) {
		if !slices.ContainsFunc(held, func(h awaited) bool { return sameAwaited(h, want) }) {
			return t.fail(t.value, "what it waits for may depend on values: %s", t.want.Missing[i])
		}
	}
	return nil
}
