package testcase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/rollout"
)

// A Result is what became of one test. It can cross a process boundary.
type Result struct {
	Name     string         `json:"name"`
	Position fault.Position `json:"position"`
	// Differences are what the operator decides otherwise; a test without any has passed.
	Differences []Difference `json:"differences,omitempty"`
}

// A Difference is one value that is not as it is wanted.
type Difference struct {
	// Position is where the value is wanted, or where the package has a fault that no test wants.
	Position fault.Position `json:"position"`
	// Path is the path of the value below want, such as objects.web.deployment.spec.replicas, or "".
	Path string `json:"path,omitempty"`
	// Message says what differs, with secrets masked.
	Message string `json:"message"`
	// Want and Got are the value that is wanted, if it is one, and the one that is decided. They are nil if nothing may
	// take the place of the value in the test, such as a secret.
	Want json.RawMessage `json:"want,omitempty"`
	Got  json.RawMessage `json:"got,omitempty"`
}

// Run runs tests of a package one after the other, and returns also what they have covered of it. It errors when the
// context ends; what is wrong with a test is in its result.
func Run(ctx context.Context, p *program.Program, tests []Test) ([]Result, []Point, error) {
	out := make([]Result, 0, len(tests))
	covered := newCoverage(p)
	for _, t := range tests {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		out = append(out, Result{Name: t.Name, Position: t.Position, Differences: t.run(ctx, p, covered)})
	}
	return out, covered.all(p), nil
}

// run returns what is decided otherwise than the test wants.
func (t Test) run(ctx context.Context, p *program.Program, covered *coverage) []Difference {
	if len(t.faults) > 0 {
		return t.miswritten()
	}
	in, err := t.given(p)
	if err != nil {
		return t.wrong(err)
	}
	steps, err := t.steps()
	if err != nil {
		return t.wrong(err)
	}
	session, out, err := render.NewSession(ctx, p, in)
	if err != nil {
		return t.wrong(err)
	}
	covered.see(out)
	c := &comparison{redactor: out.Redactor, secrets: secretsOf(out), index: p.Syntax()}
	for _, text := range out.Unmatched {
		c.addf(t.Position, "", "given: %s is neither an object of the resource nor an input", text)
	}
	if err := c.decision(t.want(), out); err != nil {
		return t.wrong(err)
	}
	c.phase(t.want(), out.Phase)
	if len(c.found) > 0 {
		return c.found // what follows would only follow from that
	}
	r := newRun(t, session, p, in)
	r.covered = covered
	for _, s := range steps {
		found, err := r.take(ctx, s)
		if err != nil {
			return t.wrong(fmt.Errorf("%s: %w", s, err))
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// miswritten returns the faults of the test as its only differences, with what to write instead.
func (t Test) miswritten() []Difference {
	var out []Difference
	for _, f := range t.faults {
		f.Position.Use = "" // the contract is used by the package, and its line says nothing about the test
		out = append(out, differenceOf(f))
	}
	return out
}

// differenceOf returns what a fault says, with what to write instead.
func differenceOf(f fault.Fault) Difference {
	at := f.Position
	f.Position = fault.Position{}
	return Difference{Position: at, Message: f.Error()}
}

// wrong returns an error as the only differences of a test.
func (t Test) wrong(err error) []Difference {
	if faults, ok := errors.AsType[fault.Faults](err); ok {
		var out []Difference
		for _, f := range faults {
			out = append(out, differenceOf(f))
		}
		return out
	}
	return []Difference{{Position: t.Position, Message: err.Error()}}
}

// objectsOf returns the rendered objects by component and name.
func objectsOf(out render.Output) map[string]any {
	all := map[string]any{}
	for _, o := range out.Objects() {
		in(all, o.Component)[o.Name] = o.Manifest
	}
	return all
}

// secretsOf returns the paths of the content of Secrets.
func secretsOf(out render.Output) map[string]bool {
	secrets := map[string]bool{}
	for _, o := range out.Objects() {
		if object.MayBeSecret(o.Identity.Kind) {
			addSecret(secrets, "objects", o.Component, o.Name)
		}
	}
	return secrets
}

// addSecret adds the paths of the content of a Secret.
func addSecret(secrets map[string]bool, part, component, object string) {
	for _, field := range []string{"data", "stringData"} {
		secrets[cue.MakePath(cue.Str(part), cue.Str(component), cue.Str(object), cue.Str(field)).String()] = true
	}
}

// edgesOf returns the dependencies by component.
func edgesOf(out render.Output) map[string]any {
	all := map[string]any{}
	for _, c := range out.Components {
		for _, e := range c.Source.Edges {
			in(all, c.Name)[e.To] = map[string]any{"until": string(e.Until), "optional": e.Optional, "origin": string(e.Origin)}
		}
	}
	return all
}

// verdictsOf returns what the conditions of each component come to.
func verdictsOf(out render.Output) map[string]any {
	all := map[string]any{}
	for _, c := range out.Components {
		all[c.Name] = map[string]any{
			"when":     string(c.Source.When.Verdict),
			"requires": verdicts(c.Source.Requires),
			"verify":   verdicts(c.Source.Verify),
			"failed":   verdicts(c.Source.Failed),
		}
	}
	return all
}

func verdicts(predicates []program.Predicate) map[string]any {
	out := map[string]any{}
	for _, p := range predicates {
		out[p.Name] = string(p.Verdict)
	}
	return out
}

// componentsOf returns what the status would say of each component.
func componentsOf(out render.Output) map[string]any {
	all := map[string]any{}
	for _, c := range out.Components {
		all[c.Name] = map[string]any{"state": string(c.State), "reason": string(c.Reason), "message": c.Message}
	}
	return all
}

// in returns the map below a key, which it makes if there is none.
func in(all map[string]any, key string) map[string]any {
	below, ok := all[key].(map[string]any)
	if !ok {
		below = map[string]any{}
		all[key] = below
	}
	return below
}

// compareAbsent compares which components and objects are not applied.
func (c *comparison) compareAbsent(want cue.Value, out render.Output) {
	applied := objectsOf(out)
	known := map[string]rollout.ComponentPreview{}
	for _, component := range out.Components {
		known[component.Name] = component
	}
	fields, err := want.Fields()
	for err == nil && fields.Next() {
		component, v := fields.Selector().Unquoted(), fields.Value()
		path := "absent." + component
		objects, _ := applied[component].(map[string]any)
		switch _, exists := known[component]; {
		case !exists:
			c.addf(program.PositionOf(v), path, "the package has no such component; it has %s", names(known))
		case v.IncompleteKind() == cue.BoolKind && len(objects) > 0:
			c.addf(program.PositionOf(v), path, "want no object, got %s", names(objects))
		default:
			below, err := v.Fields()
			for err == nil && below.Next() {
				name := below.Selector().Unquoted()
				switch names, may := c.mayHave(known[component], name); {
				case objects[name] != nil:
					c.addf(program.PositionOf(below.Value()), path+"."+name, "want no such object, got one")
				case !may:
					c.addf(program.PositionOf(below.Value()), path+"."+name, "the component has no such object; it has %s", strings.Join(names, ", "))
				}
			}
		}
	}
}

// mayHave reports whether a component has an object of a name for some resource, and returns the names that are known.
func (c *comparison) mayHave(component rollout.ComponentPreview, name string) ([]string, bool) {
	known, open := c.index.Names("components", component.Name, "objects")
	for _, o := range component.Source.Objects {
		known = append(known, o.Name)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return known, open || slices.Contains(known, name)
}

// names returns the sorted keys of a map as a text.
func names[T any](of map[string]T) string {
	keys := slices.Sorted(maps.Keys(of))
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(keys, ", ")
}

// listed returns faults as a text.
func listed(faults fault.Faults) string {
	if len(faults) == 0 {
		return "none"
	}
	return faults.Error()
}

// String returns a difference on one line, which begins with file:line.
func (d Difference) String() string {
	text := d.Message
	if d.Path != "" {
		text = d.Path + ": " + text
	}
	if d.Position.IsZero() {
		return text
	}
	return d.Position.String() + ": " + text
}
