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

// A componentEvaluator evaluates one component, or one hook.
type componentEvaluator struct {
	*evaluator
	definition declaration
	value      cue.Value
	out        Component
}

// component evaluates one component.
func (e *evaluator) component(name string, v cue.Value) Component {
	c := &componentEvaluator{evaluator: e, definition: declarationOf(e.index, name, v), value: v, out: Component{Name: name, Rendering: RenderedComplete}}
	own := ownFaults(v)
	c.out.When = c.decide(c.part("when"))
	if c.out.When.Verdict != False {
		e.rendered.component(name, c.part("objects"))
	}
	if e.rendered.over() {
		return c.out
	}
	c.noteNames()
	c.edges(c.part("dependsOn"))
	c.out.Requires = c.predicates("requires")
	c.out.Verify = c.predicates("verify")
	c.out.Failed = c.predicates("failed")
	c.out.Timeout, _ = time.ParseDuration(stringOr(c.part("timeout"), "0s"))
	c.out.Unserved = stringOr(c.part("unserved"), UnservedWait)
	c.render(c.part("objects"), c.part("policy"))
	if len(own) > 0 && cue.IsIncomplete(v.Err()) {
		c.holdParts(own[0])
	} else {
		c.note(own, nil)
	}
	switch {
	case len(c.out.Faults) > 0:
		c.out.Rendering = RenderedInvalid
	case len(c.out.Missing) > 0:
		c.out.Rendering = RenderedIncomplete
	}
	return c.out
}

// noteNames adds a fault for each invalid name, of the component and of its objects.
func (c *componentEvaluator) noteNames() {
	if f, wrong := c.static.contract.nameFault(c.value.Path()); wrong {
		f.Position = PositionOf(c.value)
		c.note(fault.Faults{f}, nil)
	}
	for name, o := range fields(c.part("objects")) {
		if f, wrong := c.static.contract.nameFault(o.Path()); wrong {
			f.Position = c.definition.placeOf(o, "objects", name)
			c.note(fault.Faults{f}, nil)
		}
	}
}

// part returns a part of the component, or a value that does not exist.
func (c *componentEvaluator) part(name string) cue.Value {
	if !c.index.MayHave(name, c.out.Name) {
		return cue.Value{}
	}
	return Lookup(c.value, name)
}

// note adds faults to the component. For incomplete faults, and for faults of another component
// that it refers to, it waits; the others make it invalid.
func (c *componentEvaluator) note(faults fault.Faults, err error) {
	own, others := ofComponent(c.out.Name, faults)
	if cue.IsIncomplete(err) {
		own, others = nil, append(own, others...)
	}
	for _, f := range own {
		c.out.Faults = appendNew(c.out.Faults, c.definition.placedFault(f))
	}
	c.wait(others)
}

// wait adds faults that the component waits for.
func (c *componentEvaluator) wait(faults fault.Faults) {
	for _, f := range faults {
		if wrong, never := c.unwrittenField(f); never {
			c.out.Faults = appendNew(c.out.Faults, c.definition.placedFault(wrong))
			continue
		}
		if field, ok := c.unsetSpecField(f); ok {
			c.out.Unset = appendNew(c.out.Unset, field)
		}
		c.missFrom(&c.out, f)
		c.out.noteAbsent(c.absent(f))
		f = c.definition.placedFault(c.explained(f))
		if within, ok := strings.CutPrefix(f.Path, PathOf(c.out.Name).String()); ok {
			f.Path = strings.TrimPrefix(within, ".")
		}
		c.out.await(f)
	}
}

// await adds a value that a component waits for.
func (c *Component) await(f fault.Fault) {
	if text := f.Located(); !slices.Contains(c.Missing, text) {
		c.Missing, c.MissingAt = append(c.Missing, text), append(c.MissingAt, f.Path)
	}
}

// appendNew appends a value unless it is in the slice already.
func appendNew[T comparable](all []T, v T) []T {
	if slices.Contains(all, v) {
		return all
	}
	return append(all, v)
}

// missFrom records which components a missing value comes from: the component of the output, and
// the component whose live object that output reads.
func (e *evaluator) missFrom(c *Component, f fault.Fault) {
	var from []string
	if sels := cue.ParsePath(f.Path).Selectors(); len(sels) > 1 && sels[0] == cue.Str("components") {
		from = append(from, nameOf(sels[1]))
	}
	if a, ok := e.missingReference(f); ok {
		if to, ok := a.Dependency(); ok {
			from = append(from, to)
		}
	}
	for _, name := range from {
		if name != c.Name {
			c.MissingFrom = appendNew(c.MissingFrom, name)
		}
	}
}

// PathOf returns the path of a component, or of a hook, whose name is its path.
func PathOf(name string) cue.Path {
	if parts := strings.SplitN(name, ".", 3); len(parts) == 3 && parts[0] == "hooks" {
		return cue.MakePath(cue.Str("hooks"), cue.Str(parts[1]), cue.Str(parts[2]))
	}
	return cue.MakePath(cue.Str("components"), cue.Str(name))
}

// ofComponent separates the faults of one component from those of the components that it refers
// to: a component that waits for an invalid one is not invalid itself.
func ofComponent(name string, faults fault.Faults) (own, others fault.Faults) {
	for _, f := range faults {
		sels := cue.ParsePath(f.Path).Selectors()
		if len(sels) > 1 && sels[0] == cue.Str("components") && nameOf(sels[1]) != name {
			others = append(others, f)
			continue
		}
		own = append(own, f)
	}
	return own, others
}

// decide evaluates when. A component without one exists.
func (c *componentEvaluator) decide(when cue.Value) WhenResult {
	if !when.Exists() {
		return WhenResult{Verdict: True}
	}
	pred := c.predicate("when", when)
	if pred.Verdict == True {
		return WhenResult{Verdict: True}
	}
	return WhenResult{Verdict: pred.Verdict, Detail: pred.ExplainWhen(), Unset: pred.Unset, Absent: pred.Absent}
}

// edges evaluates dependsOn, and adds the edges that follow from references, unless they are
// declared as well: a declared edge has more settings.
func (c *componentEvaluator) edges(dependsOn cue.Value) {
	c.note(ownFaults(dependsOn), dependsOn.Err())
	for to, v := range fields(dependsOn) {
		c.out.Edges = append(c.out.Edges, c.edge(to, v))
	}
	for _, d := range c.index.DerivedEdges(c.out.Name, c.definition.Declaration) {
		declared := slices.ContainsFunc(c.out.Edges, func(e Edge) bool { return e.To == d.To })
		if !declared && c.uses(c.out.Name, d) {
			e := derivedEdge(d)
			e.FromData = e.If != "" || c.definition.FromData()
			c.out.Edges = append(c.out.Edges, e)
		}
	}
}

// edge evaluates one declared edge. An invalid edge makes the component invalid: treating
// it as another edge would order changes wrongly.
func (c *componentEvaluator) edge(to string, v cue.Value) Edge {
	out := Edge{To: to, Until: UntilVerified, Origin: Declared, Position: c.definition.placeOf(v, "dependsOn", to)}
	out.Computed, out.FromData = c.definition.fromData(v, "dependsOn", to)
	c.note(ownFaults(v), v.Err())
	for name, field := range fields(v) {
		switch name {
		case "check":
			pred := c.predicate(name, field)
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
		c.note(valueFaults(field, nil), nil)
	}
	return out
}

// render evaluates the objects. An invalid object makes the component invalid, and an incomplete
// object makes it incomplete: a component is atomic.
func (c *componentEvaluator) render(objects, policies cue.Value) {
	c.note(ownFaults(objects), objects.Err())
	c.note(ownFaults(policies), policies.Err())
	for name, v := range fields(objects) {
		o := Object{Name: name, Position: c.definition.placeOf(v, "objects", name)}
		o.Policy, o.Patchable = c.policy(name, policies)
		value, err := data(v)
		if err == nil {
			o.Manifest, _ = value.(map[string]any)
			if c.rendered.manifest(o.Manifest); c.rendered.over() {
				return
			}
			o.Identity = object.RefOf(&unstructured.Unstructured{Object: o.Manifest})
		} else {
			o.Identity = refOf(v)
			c.noteObject(o, v, err)
		}
		if o.Identity.Kind != object.SecretKind {
			o.Secrets = c.secrets.behind(c.out.Name, name)
		}
		o.NamedBySecret = c.secrets.mayIdentify(c.out.Name, name)
		c.out.Objects = append(c.out.Objects, o)
	}
}

// noteObject adds the reason why an object could not be rendered.
func (c *componentEvaluator) noteObject(o Object, v cue.Value, err error) {
	if faults := withoutContent(v, valueFaults(v, err)); len(faults) > 0 {
		c.note(faults, nil)
		return
	}
	if cycles := cyclesIn(v); len(cycles) > 0 {
		c.note(cycles, nil)
		return
	}
	var unset, missing fault.Faults
	for _, f := range fault.FromCUE(v.Validate(cue.Concrete(true)), v) {
		if f.Code == fault.Unset && decided(v, f.Path) {
			if f.Position.IsContract() {
				f.Position = o.Position
			}
			unset = append(unset, f) // nobody would ever set it
			continue
		}
		missing = append(missing, f)
	}
	c.note(unset, nil)
	c.wait(missing)
}

// decided reports whether the fields of the structs around a path below v are all known, so
// that no comprehension can add one.
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

// cyclesIn returns the fields of a value that refer to themselves. CUE calls them incomplete,
// because unification might still decide them. Nothing unifies with a rendered object.
func cyclesIn(v cue.Value) fault.Faults {
	out := fault.FromCUE(v.Validate(cue.DisallowCycles(true)), v)
	out = slices.CompactFunc(out, func(a, b fault.Fault) bool { return a.Path == b.Path })
	for i := range out {
		out[i].Code, out[i].Origin = fault.Invalid, fault.TokenPosition{}
		out[i].Hint = ClosestNameHint
	}
	return out
}

// valueFaults returns why a value can never be part of an object: err if it is a fault of reading
// the value as data, or else what Validate reports.
func valueFaults(v cue.Value, err error) fault.Faults {
	if f, ok := errors.AsType[fault.Fault](err); ok {
		return fault.Faults{f}
	}
	return fault.FromCUE(v.Validate(), v)
}

// policy returns how an object is treated, and which fields of it are patchable.
func (c *componentEvaluator) policy(object string, policies cue.Value) (out Policy, patchable map[string]bool) {
	out = Policy{Apply: "ssa", Delete: "delete", Verify: "ready"}
	if !policies.Exists() || !c.index.MayHave(object, c.out.Name, "policy") {
		return out, nil
	}
	policy := Lookup(policies, object)
	c.note(ownFaults(policy), policy.Err())
	parts := map[string]any{"apply": &out.Apply, "delete": &out.Delete, "adopt": &out.Adopt, "verify": &out.Verify, "patchable": &patchable}
	for name, field := range fields(policy) {
		if into, known := parts[name]; known {
			if err := field.Decode(into); err != nil {
				c.note(fault.FromCUE(err, field), err)
			}
		}
	}
	return out, patchable
}

// explained returns an incomplete fault with the whole reference in its message. CUE names only
// the last field of it.
func (e *evaluator) explained(f fault.Fault) fault.Fault {
	if a, ok := e.missingReference(f); ok {
		f.Message = a.String()
	}
	return f
}

// positionOf returns where a member of a root field is written, or, failing that, where
// CUE says its value comes from.
func (e *evaluator) positionOf(v cue.Value, root, name string) fault.Position {
	if pos := e.index.PositionOf(root, name); !pos.IsZero() {
		return pos
	}
	return PositionOf(v)
}

// PositionOf returns where the author wrote a value, or else where the contract has it.
func PositionOf(v cue.Value) fault.Position {
	if at := authored(v); len(at) > 0 {
		return at[0]
	}
	return fault.PositionAt(v.Pos())
}
