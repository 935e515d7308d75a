package program

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// The ways of a conversion, as the contract calls them.
const (
	wayTo   = "to"
	wayFrom = "from"
)

// A conversionStep is one conversion between neighbours.
type conversionStep struct {
	// version declares it, with other as its neighbour.
	version, other, way string
}

// target returns the version that a step leads to.
func (s conversionStep) target() string {
	if s.way == wayTo {
		return s.other
	}
	return s.version
}

// path returns where the package has a step.
func (s conversionStep) path(below ...string) []string {
	return append([]string{"versions", s.version, "convert", s.other, s.way}, below...)
}

// A Conversion is a spec to convert, of a resource that a message names.
type Conversion struct {
	Namespace, Name string
	// From and To are versions.
	From, To string
	Spec     any
}

// Conversions turn the specs of one version of a kind into those of another one.
type Conversions struct {
	// name is that of the package.
	name     string
	compiled compiled
	meta     Meta
	limits   Limits
}

// ManyConversions returns what converts as Conversions does, and costs a compilation once and less for each conversion: the
// package that it evaluates has no objects, unless conversions depend on them.
func (p *Program) ManyConversions() *Conversions {
	alone, err := p.Recompile(func(inst *build.Instance) {
		if len(p.shown) > 0 { // it is the cheap one
			syntax.MatchEnumerations(inst)
		}
		syntax.Without(inst, "components", "hooks", "inputs", "status")
		syntax.Prune(inst)
	})
	if err != nil || alone.program.compiled.base.Err() != nil {
		return p.conversions
	}
	out := *p.conversions
	out.compiled = alone.program.compiled
	return &out
}

// Convert returns the spec of one version that becomes of a spec of another one. It is pure and safe for
// concurrent use.
//
// It errors with Faults if the spec is not one of its version, or if the package has no valid spec of the other
// version for it; with a LimitError if the spec, or what becomes of it, exceeds a limit of the package; and with a
// PanicError if CUE panics. No message has a text of the spec, which may belong to a Secret.
func (c *Conversions) Convert(spec any, from, to string) (out map[string]any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			out, err = nil, &PanicError{Package: c.name, Cause: cause, Stack: debug.Stack()}
		}
	}()
	steps, err := c.meta.stepsBetween(from, to)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		spec = map[string]any{} // the defaults of the schema apply
	}
	if err := c.checkSpec(spec); err != nil {
		return nil, err
	}
	var is bool
	if out, is = normalizeNumbers(spec).(map[string]any); !is {
		return nil, fault.Faults{{Path: "spec", Message: "it is not a struct"}}
	}
	given := textsOf(out, nil)
	for _, s := range steps {
		if out, err = c.step(out, s); err != nil {
			return nil, withoutTextsOf(err, given)
		}
		if err := c.checkSpec(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// CheckSpec errors with a LimitError, as ConvertResource does, if a spec exceeds a limit of the package.
func (c *Conversions) CheckSpec(spec any) error {
	if err := c.checkSpec(spec); err != nil {
		return c.withoutValues(err)
	}
	return nil
}

// checkSpec errors with a LimitError, which names what is large, if a spec exceeds a limit of the package.
func (c *Conversions) checkSpec(spec any) error {
	return c.limits.check(map[string]any{"cr": map[string]any{"spec": spec}})
}

// step converts a spec to a neighbour.
func (c *Conversions) step(spec map[string]any, s conversionStep) (map[string]any, error) {
	filling := any(spec)
	for _, name := range slices.Backward(s.path("given")) {
		filling = map[string]any{name: filling}
	}
	data, _ := filling.(map[string]any)
	root := c.compiled.fill(data)
	given := Lookup(root, s.path("given")...)
	if err := given.Validate(cue.Concrete(true)); err != nil {
		return nil, specFaults(given, err, "given")
	}
	out := Lookup(root, s.path("spec")...).Unify(Lookup(root, "versions", s.target(), "spec"))
	if err := out.Validate(cue.Concrete(true)); err != nil {
		return nil, specFaults(out, err, "spec")
	}
	return specData(out)
}

// specData returns an evaluated spec as data.
func specData(v cue.Value) (map[string]any, error) {
	plain, err := data(v)
	if err != nil {
		return nil, specFaults(v, err, "spec")
	}
	out, is := plain.(map[string]any)
	if !is {
		return nil, fault.Faults{{Position: fault.PositionAt(v.Pos()), Path: "spec", Message: "it is not a struct"}}
	}
	return out, nil
}

// specFaults returns what is wrong with a spec, with paths from the spec on.
func specFaults(v cue.Value, err error, name string) fault.Faults {
	out := fault.FromCUE(err, v)
	for i := range out {
		// CUE writes paths from the root of the package, or from where the values met.
		_, below, found := strings.Cut(out[i].Path+".", "."+name+".")
		switch {
		case found && below != "":
			out[i].Path = "spec." + strings.TrimSuffix(below, ".")
		default:
			out[i].Path = "spec"
		}
	}
	return out
}

// textsOf adds the texts and names in data to a list.
func textsOf(v any, out []string) []string {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = textsOf(e, out)
		}
	case map[string]any:
		for _, e := range v {
			out = textsOf(e, out)
		}
	}
	return out
}

// withoutTextsOf returns an error without messages that quote texts.
func withoutTextsOf(err error, texts []string) error {
	faults, are := err.(fault.Faults) //nolint:errorlint // step returns them as they are
	if !are {
		return err
	}
	for i, f := range faults {
		if quotes(f.Message, texts) {
			faults[i].Message = "the value does not fit"
		}
	}
	return faults
}

// Converts reports whether there is a version besides the storage version.
func (m Meta) Converts() bool { return len(m.Versions) > 1 }

// Converted returns the versions that are served and not stored.
func (m Meta) Converted() []string {
	var out []string
	for _, v := range m.Versions {
		if v.Served && !v.Storage {
			out = append(out, v.Name)
		}
	}
	return out
}

// version returns a version by its name.
func (m Meta) version(name string) (VersionMeta, bool) {
	i := slices.IndexFunc(m.Versions, func(v VersionMeta) bool { return v.Name == name })
	if i < 0 {
		return VersionMeta{}, false
	}
	return m.Versions[i], true
}

// stepsBetween returns the steps from one version to another one. It errors with Faults if there is no such version.
func (m Meta) stepsBetween(from, to string) ([]conversionStep, error) {
	up, err := m.chain(from)
	if err != nil {
		return nil, err
	}
	down, err := m.chain(to)
	if err != nil {
		return nil, err
	}
	// What both chains have at their ends is beyond the version where they meet.
	for len(up) > 0 && len(down) > 0 && up[len(up)-1] == down[len(down)-1] {
		up, down = up[:len(up)-1], down[:len(down)-1]
	}
	for _, s := range slices.Backward(down) {
		s.way = wayFrom
		up = append(up, s)
	}
	return up, nil
}

// chain returns the steps from a version to the storage version. It errors with Faults if none lead there.
func (m Meta) chain(name string) ([]conversionStep, error) {
	var out []conversionStep
	for {
		v, known := m.version(name)
		switch {
		case !known:
			return nil, fault.Faults{{Path: "versions", Message: fmt.Sprintf("there is no version %s", name)}}
		case v.Storage:
			return out, nil
		case v.Neighbour == "" || len(out) == len(m.Versions):
			return nil, fault.Faults{{Path: "versions." + name, Message: "no conversion leads to the storage version"}}
		}
		out = append(out, conversionStep{version: name, other: v.Neighbour, way: wayTo})
		name = v.Neighbour
	}
}

// conversionFaults returns what is wrong with the versions of a package of which one is the storage version.
func (m Meta) conversionFaults(static cue.Value, index *syntax.Index) fault.Faults {
	var out fault.Faults
	stored := m.stored()
	add := func(message, hint string, path ...string) {
		out = append(out, fault.Fault{Position: index.NearestPosition(path...), Path: strings.Join(path, "."), Message: message, Hint: hint})
	}
	if len(m.Versions) > 1 && !stored.Served {
		add("the storage version is not served, and it is the one that the operator reads", "leave served out", "versions", stored.Name, "served")
	}
	for _, v := range m.Versions {
		var neighbours []string
		for name := range fields(Lookup(static, "versions", v.Name, "convert")) {
			neighbours = append(neighbours, name)
		}
		switch at := []string{"versions", v.Name, "convert"}; {
		case v.Storage && len(neighbours) > 0:
			add("the storage version is converted by the other versions", "write it in each of the others, as convert: "+v.Name, at...)
		case v.Storage:
		case len(neighbours) == 0:
			add("it says nothing of how this version and the storage version become each other", fmt.Sprintf("write convert: %s: {to: {given: {...}, spec: {...}}, from: {given: {...}, spec: {...}}}", stored.Name), at...)
		case len(neighbours) > 1:
			add("it has more than one neighbour: "+strings.Join(neighbours, ", "), "keep the one on the way to the storage version", at...)
		default:
			if problem, hint := m.neighbourProblem(v); problem != "" {
				add(problem, hint, append(at, v.Neighbour)...)
			}
			out = append(out, conversionReferenceFaults(index, append(at, v.Neighbour))...)
		}
		if !v.Storage && Lookup(static, "versions", v.Name, "status").Exists() {
			add("the status is not converted, so all versions have the same", "leave it out here", "versions", v.Name, "status")
		}
	}
	return out
}

// conversionReferenceFaults returns the references of a conversion to what no conversion is given. It would have the
// defaults of that for each resource.
func conversionReferenceFaults(index *syntax.Index, at []string) fault.Faults {
	var out fault.Faults
	for _, way := range []string{wayTo, wayFrom} {
		path := append(slices.Clone(at), way, "spec")
		for _, r := range index.PathRestsOn(path...) {
			out = append(out, fault.Fault{
				Position: r.Position, Path: strings.Join(path, "."),
				Message: "a conversion is given nothing but a spec, and this refers to " + r.String(), Hint: "use given",
			})
		}
	}
	return out
}

// neighbourProblem returns what is wrong with the neighbour of a version, and what to write instead, or "".
func (m Meta) neighbourProblem(v VersionMeta) (problem, hint string) {
	var others []string
	for _, o := range m.Versions {
		if o.Name != v.Name {
			others = append(others, o.Name)
		}
	}
	if !slices.Contains(others, v.Neighbour) {
		return "there is no other version " + v.Neighbour, HintAmong(v.Neighbour, others)
	}
	if _, err := m.chain(v.Name); err != nil {
		return "the conversions do not lead to the storage version", "write convert: " + m.stored().Name + " in one of them"
	}
	return "", ""
}
