package render

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"operetta.dev/engine/program"
)

// matcher finds the live objects and the inputs of a package among manifests.
type matcher struct {
	namespace string
	// live is what was given or found, by component and object name.
	live map[string]map[string]map[string]any
	// hidden are the excluded components whose live objects the package does not see,
	// with why: nothing counts on what is on its way out.
	hidden map[string]string
	// inputs is what was found of the package's inputs, by their names.
	inputs map[string]program.Found
	// given are the names under which live objects were given.
	given [][2]string
	// manifests are the objects to match, in the order in which they were given.
	manifests []Identity
	known     map[Identity]map[string]any
	matched   map[Identity]bool
}

func newMatcher(in Input, cr map[string]any, namespace string) *matcher {
	m := &matcher{
		namespace: namespace,
		live:      map[string]map[string]map[string]any{},
		hidden:    map[string]string{},
		inputs:    map[string]program.Found{},
		known:     map[Identity]map[string]any{},
		matched:   map[Identity]bool{},
	}
	for _, component := range slices.Sorted(maps.Keys(in.Live)) {
		for _, name := range slices.Sorted(maps.Keys(in.Live[component])) {
			m.given = append(m.given, [2]string{component, name})
			m.put(component, name, in.Live[component][name])
		}
	}
	for _, object := range in.Manifests {
		id := IdentityOf(object).in(namespace)
		if m.known[id] == nil {
			m.manifests = append(m.manifests, id)
		}
		m.known[id] = object
	}
	// A dump of a namespace holds the custom resource as well.
	m.matched[IdentityOf(cr)] = true
	return m
}

func (m *matcher) put(component, name string, object map[string]any) {
	if m.live[component] == nil {
		m.live[component] = map[string]map[string]any{}
	}
	m.live[component][name] = object
}

// match adds the manifests that are the live form of an object of the package, or
// that it reads, and reports whether there were any. What has been found stays found,
// so that matching ends after as many rounds as there are objects and inputs.
func (m *matcher) match(r program.Rollout) bool {
	found := false
	for _, in := range r.Inputs {
		found = m.matchInput(in) || found
	}
	for _, c := range r.Components {
		for _, o := range c.Objects {
			id, known := identityIn(m.namespace, o)
			if !known || m.live[c.Name][o.Name] != nil {
				continue
			}
			if object := m.known[id]; object != nil {
				m.put(c.Name, o.Name, object)
				m.matched[id] = true
				found = true
			}
		}
	}
	return found
}

// visible returns the live objects that the package sees.
func (m *matcher) visible() map[string]map[string]map[string]any {
	out := maps.Clone(m.live)
	for component := range m.hidden {
		delete(out, component)
	}
	return out
}

// hide hides the live objects of excluded components, and reports whether there were any.
func (m *matcher) hide(r program.Rollout) bool {
	components, _ := order(r.Components)
	before := len(m.hidden)
	for name, why := range program.Excluded(components, m.hidden) {
		if len(m.live[name]) > 0 {
			m.hidden[name] = why
		}
	}
	return len(m.hidden) > before
}

// matchInput adds the manifests that an input reads, once it is known which.
func (m *matcher) matchInput(in program.Input) bool {
	if _, done := m.inputs[in.Name]; done || in.Missing != "" {
		return false
	}
	f := program.Found{Several: in.Object == ""}
	wanted := Identity{GroupKind: in.Kind.GroupKind(), Namespace: in.Namespace, Name: in.Object}.in(m.namespace)
	for _, id := range m.manifests {
		if f.Several {
			wanted.Name = id.Name
		}
		if id != wanted || f.Several && !selects(in.Selector, m.known[id]) {
			continue
		}
		f.Objects = append(f.Objects, m.known[id])
		m.matched[id] = true
	}
	if len(f.Objects) == 0 {
		return false
	}
	m.inputs[in.Name] = f
	return true
}

// absent says of each input that nothing was found of why, but for those that only
// components refer to which should not exist.
func (m *matcher) absent(inputs []program.Input, components []Component) []string {
	var out []string
	for _, in := range inputs {
		if _, found := m.inputs[in.Name]; found || in.OnlyOf(excluded(components)) {
			continue
		}
		if in.Missing != "" {
			out = append(out, "inputs."+in.Name+": "+in.Missing)
			continue
		}
		what := Identity{GroupKind: in.Kind.GroupKind(), Namespace: in.Namespace, Name: in.Object}.in(m.namespace).String()
		if in.Object == "" {
			what += labels.FormatLabels(in.Selector)
		}
		out = append(out, "inputs."+in.Name+": "+what+in.Position.Behind()+" was not found; give it with --live")
	}
	return out
}

// excluded returns the names of the components that should not exist.
func excluded(components []Component) []string {
	var out []string
	for _, c := range components {
		if c.State == Excluded {
			out = append(out, c.Name)
		}
	}
	return out
}

// selects reports whether an object has all labels of a selector.
func selects(selector map[string]string, object map[string]any) bool {
	have, _ := metadataOf(object)["labels"].(map[string]any)
	for k, v := range selector {
		if have[k] != v {
			return false
		}
	}
	return true
}

// unmatched describes the live objects that are no rendered object and no input.
func (m *matcher) unmatched(components []program.Component) []string {
	var out []string
	for _, given := range m.given {
		if !has(components, given[0], given[1]) {
			out = append(out, given[0]+"."+given[1])
		}
	}
	for _, id := range m.manifests {
		if !m.matched[id] {
			out = append(out, id.String())
		}
	}
	return out
}

func has(components []program.Component, component, object string) bool {
	return slices.ContainsFunc(components, func(c program.Component) bool {
		return c.Name == component && slices.ContainsFunc(c.Objects, func(o program.Object) bool { return o.Name == object })
	})
}
