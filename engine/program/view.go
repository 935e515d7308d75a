package program

import (
	"slices"

	"operetta.dev/engine/object"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// A View is what a package sees of a session: two sessions with equal views evaluate alike. It
// has the data that is filled into the package (cr, live, inputs, config), the layers of the
// configuration, and where there may be Secrets, since messages hide what they contain.
//
// Neither the resourceVersion of an object nor a field that the package does not read is
// part of it: a status that an API server writes again and again costs no evaluation.
type View struct {
	values map[string]any
	part   *projection
	// parts are those of the parts of a rollout.
	parts map[string]*projection
}

// Views say what a package sees of sessions, and how much of them there may be.
type Views struct {
	// cr, live and inputs are the parts of each that the package reads.
	cr, live, inputs *projection
	// part is the part of the values of a view that it sees.
	part *projection
	// parts are the parts of a view that the parts of a rollout rest on.
	parts map[string]*projection
	// digests is true if the package may refer to the digest of an object's content.
	digests bool
	limits  Limits
}

// viewsOf returns the views of a package by its text.
func viewsOf(x *syntax.Index, limits Limits) *Views {
	out := &Views{
		cr: resource(x), live: project(x, "live"), inputs: project(x, "inputs"),
		digests: refersToDigests(x.References()), limits: limits,
	}
	out.part = out.whole()
	out.parts = partProjections(x, out)
	return out
}

// Of returns what the package sees of a session.
func (v *Views) Of(s Session) View {
	live, input := asItIs, asItIs
	if v.digests {
		live, input = withLiveDigest, withInputDigest
	}
	values := v.values(s, live, input)
	if len(s.Config) > 0 {
		layers := make([]any, len(s.Config))
		for i, l := range s.Config {
			layers[i] = map[string]any{"origin": l.Origin, "values": l.Values, "tenant": l.Tenant}
		}
		values["layers"] = layers
	}
	if secrets := s.secrets(); len(secrets) > 0 {
		values["secrets"] = secrets
	}
	return View{values, v.part, v.parts}
}

// whole returns the part of the values of a view that the package sees.
func (v *Views) whole() *projection {
	all := &projection{all: true}
	out := &projection{fields: map[string]*projection{
		"cr": v.cr, "live": v.live, "inputs": v.inputs, "config": all, "layers": all, "secrets": all,
	}}
	out.complete()
	return out
}

// values returns what is filled into the package, among what it does not see of the same objects. Functions
// say how objects enter.
func (v *Views) values(s Session, live, input entrance) map[string]any {
	out := map[string]any{"cr": enteringResource(s.CR), "live": v.liveValues(s.Live, live)}
	if inputs := v.inputValues(s.Inputs, input); len(inputs) > 0 {
		out["inputs"] = inputs
	}
	if len(s.Config) > 0 {
		config := map[string]any{}
		for _, l := range s.Config {
			config = overlaid(config, l.Values)
		}
		out["config"] = config
	}
	return out
}

// liveValues returns the live objects that the package reads.
func (v *Views) liveValues(live map[string]map[string]map[string]any, enter entrance) map[string]any {
	out := map[string]any{}
	for component, objects := range live {
		ofComponent := v.live.field(component)
		if ofComponent == nil {
			continue
		}
		read := map[string]any{}
		for name, object := range objects {
			if part := ofComponent.field(name); part != nil {
				read[name] = enter(part, object)
			}
		}
		out[component] = read
	}
	return out
}

// filling returns the parts of a session that are filled into the package.
func (v *Views) filling(s Session) map[string]any {
	out, _ := v.part.of(v.values(s, asItIs, asItIs)).(map[string]any)
	return out
}

// An entrance returns an object as it enters a view, for the part of it that is read.
type entrance func(part *projection, object map[string]any) map[string]any

// asItIs leaves out the fields that no package may depend on.
func asItIs(part *projection, object map[string]any) map[string]any {
	if part.below("metadata", "managedFields") == nil && part.below("metadata", "annotations", SaltAnnotation) == nil {
		return object
	}
	return withoutManagedFields(object)
}

var withLiveDigest, withInputDigest = withDigest(keyOf), withDigest(InputKeyOf)

// withDigest adds the digest of the content of an object, if that is read, or whether there are annotations.
func withDigest(keyOf func(object map[string]any) string) entrance {
	return func(part *projection, object map[string]any) map[string]any {
		if part.below("metadata", "annotations") != nil {
			object = digested(object, keyOf(object))
		}
		return asItIs(part, object)
	}
}

// Values returns data with all that a package sees, and more. It must not be changed.
func (v View) Values() map[string]any { return v.values }

// Seen returns what a package sees, and nothing else. It must not be changed.
func (v View) Seen() map[string]any {
	out, _ := v.part.of(v.values).(map[string]any)
	return out
}

// Shape returns the shape of what a package sees.
func (v View) Shape(pins template.Pins) template.Key { return v.shapeOf(v.part, pins) }

func (v View) shapeOf(part *projection, pins template.Pins) template.Key {
	return template.ShapeOf(func(s *template.Shaper) {
		part.shape(s, v.values, pins)
		s.Outcomes(v.values, pins)
	})
}

// Whole returns what only equal views have.
func (v View) Whole() template.Key { return v.Shape(template.Everything) }

// Version identifies what the package sees of a session but for the live objects.
func (p *Program) Version(s Session) string {
	s.Live = nil
	key := p.views.Of(s).Whole()
	return string(key[:])
}

// secrets returns the kinds of the objects of a session that are, or may be, Secrets.
func (s Session) secrets() map[string]any {
	var out map[string]any
	for component, objects := range s.Live {
		var kinds map[string]any
		for name, content := range objects {
			if object.MayBeSecretIn(content) {
				kinds = with(kinds, name, content["kind"])
			}
		}
		if len(kinds) > 0 {
			out = with(out, component, kinds)
		}
	}
	var inputs map[string]any
	for name, found := range s.Inputs {
		if slices.ContainsFunc(found.Objects, object.MayBeSecretIn) {
			kinds := make([]any, len(found.Objects))
			for i, content := range found.Objects {
				kinds[i] = content["kind"]
			}
			inputs = with(inputs, name, kinds)
		}
	}
	if len(inputs) > 0 {
		out = with(out, "", inputs) // no component has this name
	}
	return out
}

// WithinLimits reports whether a view, and the rollout that was made of it without Evaluate, are within
// the limits of the package. Evaluate says what is beyond which of them.
func (v *Views) WithinLimits(view View, r Rollout) bool {
	if !v.limits.holds(view) {
		return false
	}
	t := tally{limits: v.limits}
	for _, c := range r.All() {
		for _, o := range c.Objects {
			t.manifest(o.Manifest)
		}
	}
	_, unstored := storable(r.Status)
	return !t.over() && unstored == r.Unstored
}
