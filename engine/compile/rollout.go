package compile

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// A rolloutTranslator translates the rollout of a session. What a rollout says beside objects, values
// and verdicts is a constant of the shape if the evaluation with holes says the same: it knows
// nothing of the values.
type rolloutTranslator struct {
	*translator
	// want is the rollout of the session, and held the one of the package with holes.
	want, held program.Rollout
	// view is what the package sees of the session, and real the package with it.
	view map[string]any
	real cue.Value
	// locate returns a condition without a verdict, as the package itself has it.
	locate func(component string, condition cue.Value) program.Predicate
	out    *Template
}

// translate returns the template.
func (t *rolloutTranslator) translate() (*Template, error) {
	t.out = frame(t.want)
	if len(t.held.Components) != len(t.want.Components) || len(t.held.Hooks) != len(t.want.Hooks) {
		return nil, t.undecided(program.Lookup(t.root, "components"), nil)
	}
	held := maps.Collect(t.held.All())
	for _, part := range []func() error{t.inputs, t.namedInputs, t.status, t.requeueAfter} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	for i, c := range t.want.All() {
		if c.Name != held[i].Name {
			return nil, t.undecided(program.Lookup(t.root, "components"), nil)
		}
		one := &componentTranslator{rolloutTranslator: t, want: c, held: held[i], value: t.root.LookupPath(program.PathOf(c.Name)), out: &t.out.Components[i]}
		guards, err := guardsOf(t.translator, one.translate)
		if err != nil {
			return nil, err
		}
		one.out.Guards = guards
	}
	t.out.Guards = t.guards
	return t.out, nil
}

// inputs translates which objects the package reads.
func (t *rolloutTranslator) inputs() error {
	if len(t.held.Inputs) != len(t.want.Inputs) {
		return t.undecided(program.Lookup(t.root, "inputs"), nil)
	}
	for i, in := range t.want.Inputs {
		v, out := program.Lookup(t.root, "inputs", in.Name), &t.out.Inputs[i]
		same := t.held.Inputs[i]
		same.Namespace, same.Object, same.Selector, same.Position = in.Namespace, in.Object, in.Selector, in.Position
		if t.rests(program.Lookup(v, "apiVersion")) || t.rests(program.Lookup(v, "kind")) {
			return t.fail(v, "values decide about the kind of an input")
		}
		if err := t.selection(v, out); err != nil {
			return err
		}
		if out.Namespace != nil || out.Object != nil || out.Selector != nil {
			same.Missing = "" // it was missing the values of holes
		}
		if textOf(same.Missing) == textOf(in.Missing) {
			same.Missing = in.Missing
		}
		if !reflect.DeepEqual(same, in) {
			return t.fail(v, "values decide about an input")
		}
	}
	return nil
}

// selection translates which objects an input selects.
func (t *rolloutTranslator) selection(v cue.Value, out *input) error {
	for _, part := range []struct {
		field string
		into  **template.Node
	}{{"namespace", &out.Namespace}, {"name", &out.Object}, {"selector", &out.Selector}} {
		field := program.Lookup(v, part.field)
		if !field.Exists() || !t.rests(field) {
			continue
		}
		n, err := t.node(field)
		if err != nil {
			return err
		}
		*part.into = n
	}
	if out.Object == nil || out.Selector != nil || program.Lookup(v, "selector").Exists() {
		return nil
	}
	named, err := template.Call("!=", out.Object, template.Constant(""))
	if err != nil {
		return t.fail(v, "%v", err)
	}
	t.guard(named) // an input with neither a name nor a selector is a fault
	return nil
}

// namedInputs errors if a message names the object of an input and that rests on values.
func (t *rolloutTranslator) namedInputs() error {
	for i, in := range t.want.Inputs {
		namespace := []string{"cr", "metadata", "namespace"}
		v := program.Lookup(t.root, "inputs", in.Name)
		out := t.out.Inputs[i]
		switch {
		case !t.want.NamesObjectOf(in):
		case out.Object != nil:
			return t.fail(program.Lookup(v, "name"), "a message names the object of an input")
		case out.Namespace != nil:
			return t.fail(program.Lookup(v, "namespace"), "a message names the object of an input")
		case in.Namespace == "" && t.paths[strings.Join(namespace, separator)] != nil:
			out := untranslatedf("inputs."+in.Name, "a message names the object of an input")
			out.Position, out.paths = in.Position, [][]string{namespace}
			return out
		}
	}
	return nil
}

// status translates the author's fields of the status.
func (t *rolloutTranslator) status() error {
	v := program.Lookup(t.root, "status")
	if t.want.Status == nil {
		return nil
	}
	complete := 0
	it, err := v.Fields(cue.Hidden(true))
	for err == nil && it.Next() {
		if it.Selector().LabelType() != cue.StringLabel {
			continue
		}
		f, err := t.statusField(it.Selector().Unquoted(), it.Value())
		if err != nil {
			return err
		}
		if f.Value != nil {
			complete++
		}
		t.out.Status = append(t.out.Status, f)
	}
	if complete != len(t.want.Status) {
		return t.undecided(v, err)
	}
	return nil
}

// statusField translates a field of the status.
func (t *rolloutTranslator) statusField(name string, v cue.Value) (out statusField, err error) {
	out.Name = name
	out.Guards, err = guardsOf(t.translator, func() (err error) {
		if _, there := t.want.Status[name]; !there {
			return t.sameMissing(v, program.Lookup(t.real, "status", name))
		}
		out.Value, err = t.member(v)
		return err
	})
	return out, err
}

// sameMissing errors unless a value with holes lacks all that the value of the session does. What
// is missing is the same in all of a shape.
func (t *rolloutTranslator) sameMissing(v, known cue.Value) error {
	missing := fault.FromCUE(v.Validate(cue.Concrete(true)), v)
	for _, f := range fault.FromCUE(known.Validate(cue.Concrete(true)), known) {
		if !slices.ContainsFunc(missing, func(m fault.Fault) bool { return m.Code == f.Code && m.Path == f.Path && m.Origin == f.Origin }) {
			return t.fail(v, "values decide whether it is complete")
		}
	}
	return t.partial(v, t.guardOperands)
}

// requeueAfter translates when to reconcile again.
func (t *rolloutTranslator) requeueAfter() (err error) {
	v := program.Lookup(t.root, "requeueAfter")
	if v.Exists() && t.rests(v) {
		t.out.RequeueAfter, err = t.node(v)
		return err
	}
	if t.held.RequeueAfter != t.want.RequeueAfter {
		return t.fail(v, "values decide when to reconcile again")
	}
	return nil
}

// textOf returns a text of the evaluation with holes as the package itself has it.
func textOf(held string) string {
	held = strings.ReplaceAll(held, `live."`+program.PresenceField+`"."`+program.ValuesField+`".`, "")
	held = strings.ReplaceAll(held, `live."`+program.PresenceField+`".`, "")
	return strings.ReplaceAll(held, optional, absent)
}

// The two ends of a message about something that is missing. Without the schema of the resource it
// is not known which fields are optional.
const (
	optional = " is optional, and not set"
	absent   = " is not there yet"
)

// textsOf returns texts as textOf does.
func textsOf(all []string) []string {
	out := make([]string, len(all))
	for i, text := range all {
		out[i] = textOf(text)
	}
	return out
}

// sameReference reports whether two references are to the same.
func sameReference(a, b syntax.Reference) bool { return slices.Equal(a.Path, b.Path) }
