package render

import (
	"maps"

	"operetta.dev/engine/program"
)

// DefaultNamespace is where a custom resource lives that does not say.
const DefaultNamespace = "default"

// Input is what Render knows besides the package.
type Input struct {
	// CR is the custom resource. It is not changed.
	CR map[string]any
	// Namespace is where a namespaced custom resource lives that does not say;
	// DefaultNamespace when empty.
	Namespace string
	// Config are layers of configuration over the package's defaults, the weakest first.
	Config []program.Layer
	// Live holds observed objects by component and object name.
	Live map[string]map[string]map[string]any
	// Manifests are observed objects whose place in the package, or among its inputs,
	// is found by their identity.
	Manifests []map[string]any
}

// Output is what the package makes of an Input.
type Output struct {
	// CR is the custom resource as it was evaluated, in its namespace.
	CR map[string]any
	// Invalid is what is wrong with the custom resource. When it is not empty,
	// nothing else is set.
	Invalid program.Faults
	// Components are all components, dependencies first; in the author's order when
	// the dependencies have no order.
	Components []Component
	// Hooks run at the phases of a rollout. They are no part of Objects.
	Hooks []program.Hook
	// Faults are what is wrong with the package as far as this custom resource
	// shows, in the order of the components. When they are in its configuration,
	// there are no components.
	Faults program.Faults
	// Status are the author's status fields that could be evaluated.
	Status map[string]any
	// Absent are the inputs that were not found, with what was looked for.
	Absent []string
	// Unmatched are the live objects that are neither a rendered object nor read.
	Unmatched []string
}

// Objects returns the objects of the rendered components in the order in which they
// would be applied: dependencies first, then as the author wrote them.
func (o Output) Objects() []Object {
	var out []Object
	for _, c := range o.Components {
		if c.State != Rendered {
			continue
		}
		for _, object := range c.Objects {
			out = append(out, Object{Component: c.Name, Object: object})
		}
	}
	return out
}

// Object is a rendered object and the component that it belongs to.
type Object struct {
	Component string
	program.Object
}

// Path returns where the object is in its package: components.web.objects.service.
func (o Object) Path() string { return objectPath(o.Component, o.Name) }

// Render evaluates a package for one custom resource. It errors only when the
// evaluator itself fails; everything that is wrong with the resource or with the
// package is in the Output.
func Render(p *program.Program, in Input) (Output, error) {
	cr := resourceIn(p, in)
	namespace, _ := metadataOf(cr)["namespace"].(string)
	m := newMatcher(in, cr, namespace)
	var rollout program.Rollout
	for again := true; again; {
		var err error
		rollout, err = p.Evaluate(program.Session{CR: cr, Live: m.visible(), Inputs: m.inputs, Config: in.Config})
		switch {
		case err != nil && m.match(rollout):
			continue // an input may decide what could not be decided
		case err != nil:
			return Output{}, redactorOf(cr, rollout, m).Error(err)
		}
		if len(rollout.Invalid) > 0 {
			return Output{CR: cr, Invalid: rollout.Invalid}.redacted(redactorOf(cr, rollout, m)), nil
		}
		if len(rollout.Misconfigured) > 0 {
			return Output{CR: cr, Faults: rollout.Misconfigured}.redacted(redactorOf(cr, rollout, m)), nil
		}
		for _, c := range rollout.Components {
			enterNamespace(c.Objects, namespace)
		}
		refuse(p.Reach(), namespace, rollout.Components)
		again = m.match(rollout) || m.hide(rollout)
	}
	return outputOf(cr, rollout, m).redacted(redactorOf(cr, rollout, m)), nil
}

// outputOf judges and orders what was evaluated last.
func outputOf(cr map[string]any, rollout program.Rollout, m *matcher) Output {
	ordered, faults := order(rollout.Components)
	components := judge(ordered, m.live, m.hidden)
	for _, c := range components {
		faults = append(faults, c.faults()...)
	}
	faults = append(faults, duplicates(components)...)
	for _, h := range rollout.Hooks {
		faults = append(faults, h.Component.Faults...)
	}
	return Output{
		CR:         cr,
		Components: components,
		Hooks:      rollout.Hooks,
		Faults:     once(append(faults, rollout.StatusFaults...)),
		Status:     rollout.Status,
		Absent:     m.absent(rollout.Inputs, components),
		Unmatched:  m.unmatched(rollout.Components),
	}
}

// once leaves out what was said before about the same field: a broken predicate, for
// one, is a fault of its own and makes its component invalid.
func once(faults program.Faults) program.Faults {
	type place struct {
		program.Position
		path string
	}
	seen := map[place]bool{}
	var out program.Faults
	for _, f := range faults {
		at := place{f.Position, f.Path}
		if seen[at] {
			continue
		}
		seen[at] = true
		out = append(out, f)
	}
	return out
}

// resourceIn returns the custom resource in its namespace, and a cluster-scoped one
// without any, as the API server would return it.
func resourceIn(p *program.Program, in Input) map[string]any {
	meta := shallow(metadataOf(in.CR))
	switch namespace, _ := meta["namespace"].(string); {
	case p.Meta().ClusterScoped:
		delete(meta, "namespace")
	case namespace == "" && in.Namespace == "":
		meta["namespace"] = DefaultNamespace
	case namespace == "":
		meta["namespace"] = in.Namespace
	}
	cr := shallow(in.CR)
	cr["metadata"] = meta
	return cr
}

func shallow(m map[string]any) map[string]any {
	out := make(map[string]any, len(m)+1)
	maps.Copy(out, m)
	return out
}

func metadataOf(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return meta
}

func objectPath(component, object string) string {
	return "components." + component + ".objects." + object
}
