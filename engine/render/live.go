package render

import (
	"maps"
	"slices"

	"operetta.dev/engine/program"
)

// matcher finds the live objects of a package among manifests.
type matcher struct {
	namespace string
	// live is what was given or found, by component and object name.
	live map[string]map[string]map[string]any
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

// match adds the manifests that are the live form of an object of the package, and reports
// whether there were any. An object that has been found stays found, so that
// matching ends after as many rounds as there are objects.
func (m *matcher) match(components []program.Component) bool {
	found := false
	for _, c := range components {
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

// unmatched describes the live objects that no rendered object accounts for.
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
