package program

import (
	"errors"
	"slices"
	"strings"
	"time"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
)

// component evaluates one component.
func (p *Program) component(name string, v cue.Value) Component {
	p = p.within(name, v)
	c := Component{Name: name, Rendering: RenderedComplete}
	own := ownFaults(v)
	c.When = p.decide(name, p.part(name, v, "when"))
	if c.When.Verdict != False {
		p.tally.component(name, p.part(name, v, "objects"))
	}
	if p.tally.over() {
		return c
	}
	p.noteNames(&c, v)
	c.Edges = p.edges(&c, p.part(name, v, "dependsOn"))
	c.Requires = p.predicates(name, "requires", p.part(name, v, "requires"))
	c.Verify = p.predicates(name, "verify", p.part(name, v, "verify"))
	c.Failed = p.predicates(name, "failed", p.part(name, v, "failed"))
	c.Timeout, _ = time.ParseDuration(stringOr(p.part(name, v, "timeout"), "0s"))
	c.Unserved = stringOr(p.part(name, v, "unserved"), UnservedWait)
	p.render(&c, p.part(name, v, "objects"), p.part(name, v, "policy"))
	if len(own) > 0 && cue.IsIncomplete(v.Err()) {
		p.holdParts(&c, own[0])
	} else {
		p.note(&c, own, nil)
	}
	switch {
	case len(c.Faults) > 0:
		c.Rendering = RenderedInvalid
	case len(c.Missing) > 0:
		c.Rendering = RenderedIncomplete
	}
	return c
}

// noteNames adds the names of the component and of its objects that are none.
func (p *Program) noteNames(c *Component, v cue.Value) {
	if f, wrong := p.nameFault(v.Path()); wrong {
		f.Position = PositionOf(v)
		p.note(c, fault.Faults{f}, nil)
	}
	for name, o := range fields(p.part(c.Name, v, "objects")) {
		if f, wrong := p.nameFault(o.Path()); wrong {
			f.Position = p.placeOf(o, "objects", name)
			p.note(c, fault.Faults{f}, nil)
		}
	}
}

// part returns a part of a component, or a value that does not exist.
func (p *Program) part(component string, v cue.Value, name string) cue.Value {
	if !p.index.MayHave(name, component) {
		return cue.Value{}
	}
	return v.LookupPath(cue.MakePath(cue.Str(name)))
}

// note adds faults to a component: as what it misses if they come from what is
// not there yet or from another component's faults, or else as its own.
func (p *Program) note(c *Component, faults fault.Faults, err error) {
	own, others := p.sorted(c.Name, faults)
	if cue.IsIncomplete(err) {
		own, others = nil, append(own, others...)
	}
	for _, f := range own {
		f = p.placedFault(f)
		if !slices.Contains(c.Faults, f) {
			c.Faults = append(c.Faults, f)
		}
	}
	p.wait(c, others)
}

// wait adds what a component waits for.
func (p *Program) wait(c *Component, faults fault.Faults) {
	for _, f := range faults {
		if wrong, never := p.misspelt(f); never {
			if wrong = p.placedFault(wrong); !slices.Contains(c.Faults, wrong) {
				c.Faults = append(c.Faults, wrong)
			}
			continue
		}
		if field, ok := p.unset(f); ok && !slices.Contains(c.Unset, field) {
			c.Unset = append(c.Unset, field)
		}
		p.missFrom(c, f)
		c.lacks(p.absent(f))
		f = p.placedFault(p.explained(f))
		if within, ok := strings.CutPrefix(f.Path, componentPath(c.Name)); ok {
			f.Path = strings.TrimPrefix(within, ".")
		}
		if text := f.Located(); !slices.Contains(c.Missing, text) {
			c.Missing = append(c.Missing, text)
		}
	}
}

// missFrom notes the components that something missing would come from: the one whose
// outputs it is, and the one whose live object they rest on.
func (p *Program) missFrom(c *Component, f fault.Fault) {
	var from []string
	if sels := cue.ParsePath(f.Path).Selectors(); len(sels) > 1 && sels[0] == componentsPath.Selectors()[0] {
		from = append(from, nameOf(sels[1]))
	}
	if a, ok := p.awaits(f); ok {
		if to, ok := a.Dependency(); ok {
			from = append(from, to)
		}
	}
	for _, name := range from {
		if name != c.Name && !slices.Contains(c.MissingFrom, name) {
			c.MissingFrom = append(c.MissingFrom, name)
		}
	}
}

// componentPath returns the path of a component, or of a hook, whose name is its
// path.
func componentPath(name string) string {
	if parts := strings.SplitN(name, ".", 3); len(parts) == 3 && parts[0] == "hooks" {
		return cue.MakePath(cue.Str("hooks"), cue.Str(parts[1]), cue.Str(parts[2])).String()
	}
	return cue.MakePath(cue.Str("components"), cue.Str(name)).String()
}

// sorted tells the faults of one component from those of others that it refers
// to: a component is not wrong because the one that it waits for is.
func (p *Program) sorted(component string, faults fault.Faults) (own, others fault.Faults) {
	for _, f := range faults {
		sels := cue.ParsePath(f.Path).Selectors()
		if len(sels) > 1 && sels[0] == componentsPath.Selectors()[0] && nameOf(sels[1]) != component {
			others = append(others, f)
			continue
		}
		own = append(own, f)
	}
	return own, others
}

// decide evaluates when. A component without one exists.
func (p *Program) decide(component string, when cue.Value) Decision {
	if !when.Exists() {
		return Decision{Verdict: True}
	}
	pred := p.predicate(component, "when", when)
	if pred.Verdict == True {
		return Decision{Verdict: True}
	}
	return Decision{Verdict: pred.Verdict, Detail: pred.Explain(), Unset: pred.Unset, Absent: pred.Absent}
}

// edges returns the declared edges in the author's order, then the derived ones.
func (p *Program) edges(c *Component, dependsOn cue.Value) []Edge {
	var out []Edge
	p.note(c, ownFaults(dependsOn), dependsOn.Err())
	for to, v := range fields(dependsOn) {
		out = append(out, p.edge(c, to, v))
	}
	for _, d := range p.index.DerivedEdges(c.Name, p.home.Home) {
		declared := slices.ContainsFunc(out, func(e Edge) bool { return e.To == d.To })
		if !declared && p.uses(c.Name, d) {
			e := derivedEdge(d)
			e.FromData = e.If != "" || p.home.FromData()
			out = append(out, e)
		}
	}
	return out
}

// edge evaluates one declared edge. One that is wrong makes the component invalid:
// taking it for another one would order changes wrongly.
func (p *Program) edge(c *Component, to string, v cue.Value) Edge {
	out := Edge{To: to, Until: UntilVerified, Origin: Declared, Position: p.placeOf(v, "dependsOn", to)}
	out.Computed, out.FromData = p.fromData(v, "dependsOn", to)
	p.note(c, ownFaults(v), v.Err())
	for name, field := range fields(v) {
		switch name {
		case "check":
			pred := p.predicate(c.Name, name, field)
			out.Check = &pred
			continue
		case "until":
			until, err := field.String()
			if err == nil {
				out.Until = Until(until)
				continue
			}
		case "optional":
			optional, err := field.Bool()
			if err == nil {
				out.Optional = optional
				continue
			}
		}
		p.note(c, valueFaults(field, nil), nil)
	}
	return out
}

// render evaluates the objects. One that is invalid makes the component invalid,
// one that is incomplete makes it incomplete: a component is atomic.
func (p *Program) render(c *Component, objects, policies cue.Value) {
	p.note(c, ownFaults(objects), objects.Err())
	p.note(c, ownFaults(policies), policies.Err())
	for name, v := range fields(objects) {
		o := Object{Name: name, Position: p.placeOf(v, "objects", name)}
		o.Policy, o.Patchable = p.policy(c, name, policies)
		value, err := data(v)
		if err == nil {
			o.Manifest, _ = value.(map[string]any)
			if p.tally.manifest(o.Manifest); p.tally.over() {
				return
			}
			o.Identity = object.RefOf(&unstructured.Unstructured{Object: o.Manifest})
		} else {
			o.Identity = refOf(v)
			p.noteObject(c, o, v, err)
		}
		if o.Identity.Kind != secretKind {
			o.Secrets = p.secretsBehind(c.Name, name)
		}
		o.NamedBySecret = p.namedBySecret(c.Name, name)
		c.Objects = append(c.Objects, o)
	}
}

// noteObject adds why an object could not be rendered.
func (p *Program) noteObject(c *Component, o Object, v cue.Value, err error) {
	if faults := withoutContent(v, valueFaults(v, err)); len(faults) > 0 {
		p.note(c, faults, nil)
		return
	}
	if cycles := cyclesIn(v); len(cycles) > 0 {
		p.note(c, cycles, nil)
		return
	}
	var unset, missing fault.Faults
	for _, f := range fault.Of(v.Validate(cue.Concrete(true)), v) {
		if f.Code == fault.Unset && decided(v, f.Path) {
			if f.Position.IsContract() {
				f.Position = o.Position
			}
			unset = append(unset, f) // nobody would ever set it
			continue
		}
		missing = append(missing, f)
	}
	p.note(c, unset, nil)
	p.wait(c, missing)
}

// decided reports whether the fields of the struct around a path below v are all
// known: no comprehension in it, and nothing that it is unified with, can add one
// to it.
func decided(v cue.Value, path string) bool {
	at := v.Path().Selectors()
	below := cue.ParsePath(path).Selectors()
	if len(below) < len(at) {
		return false
	}
	below = below[len(at):]
	for i := range below {
		if around := v.LookupPath(cue.MakePath(below[:i]...)); !around.Exists() || around.Err() != nil {
			return false
		}
	}
	return true
}

// cyclesIn returns the fields of a value that refer to themselves. They are
// incomplete to CUE, because another value might yet decide them; in an object
// none will.
func cyclesIn(v cue.Value) fault.Faults {
	out := fault.Of(v.Validate(cue.DisallowCycles(true)), v)
	out = slices.CompactFunc(out, func(a, b fault.Fault) bool { return a.Path == b.Path })
	for i := range out {
		out[i].Code, out[i].Origin = fault.Invalid, fault.Origin{}
		out[i].Hint = "a name means the closest field of that name: quote the label of the field, or rename what it should refer to"
	}
	return out
}

// valueFaults returns why a value can never be part of an object: because it is
// wrong by itself, or because the error of taking it as data says so.
func valueFaults(v cue.Value, err error) fault.Faults {
	if f, ok := errors.AsType[fault.Fault](err); ok {
		return fault.Faults{f}
	}
	return fault.Of(v.Validate(), v)
}

// policy returns how an object is treated, and which fields of it are patchable.
func (p *Program) policy(c *Component, object string, policies cue.Value) (out Policy, patchable map[string]bool) {
	out = Policy{Apply: "ssa", Delete: "delete", Verify: "ready"}
	if !policies.Exists() || !p.index.MayHave(object, c.Name, "policy") {
		return out, nil
	}
	policy := policies.LookupPath(cue.MakePath(cue.Str(object)))
	p.note(c, ownFaults(policy), policy.Err())
	for name, field := range fields(policy) {
		var err error
		switch name {
		case "apply":
			out.Apply, err = field.String()
		case "delete":
			out.Delete, err = field.String()
		case "adopt":
			out.Adopt, err = field.Bool()
		case "verify":
			out.Verify, err = field.String()
		case "patchable":
			err = field.Decode(&patchable)
		}
		if err != nil {
			p.note(c, fault.Of(err, field), err)
		}
	}
	return out, patchable
}

// explained returns a fault of something that is not there yet with the whole
// reference to it: CUE names only the field at which it ended.
func (p *Program) explained(f fault.Fault) fault.Fault {
	if a, ok := p.awaits(f); ok {
		f.Message = a.String()
	}
	return f
}

// positionOf returns where a member of a root field is written, or, failing that, where
// CUE says its value comes from.
func (p *Program) positionOf(v cue.Value, root, name string) fault.Position {
	if pos := p.index.PositionOf(root, name); !pos.IsZero() {
		return pos
	}
	return PositionOf(v)
}
