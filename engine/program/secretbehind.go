package program

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// What an object that is no Secret is made of may come from one. Then its digest would
// tell what that holds to whoever guesses, and it needs a key. As with the fields of the
// spec, the text says which Secrets those may be; where it does not, all that there are.

// secretsBehind returns the Secrets that an object of a component, or of a hook, may rest
// on.
func (p *Program) secretsBehind(component, object string) []SecretRef {
	place := component + "/" + object
	if known, ok := p.index.rests.Load(place); ok {
		out, _ := known.([]SecretRef)
		return out
	}
	out := p.behind(component, object)
	if p.index.mayName(component, object) {
		p.index.rests.Store(place, out) // of other names there may be any number
	}
	return out
}

// mayName reports whether the text has the names of a component and an object.
func (x *index) mayName(component, object string) bool {
	_, has := x.names["components."+component+".objects"].names[object]
	return has
}

func (p *Program) behind(component, object string) []SecretRef {
	s := &secretText{index: p.index}
	from := s.component(component)
	declared := s.under(s.under(from, "objects", 0), object, 0)
	if len(from) == 0 || p.index.foreign {
		return p.allSecrets()
	}
	if !s.foreign && len(declared) > 0 {
		from = declared
	}
	return p.secretsOf(from)
}

// secretsOf returns the Secrets that some members may rest on.
func (p *Program) secretsOf(members []member) []SecretRef {
	r := newReferences(p.index)
	r.follow, r.parameters = true, true
	for _, m := range members {
		r.member(m)
	}
	var out []SecretRef
	for _, ref := range r.found {
		out = append(out, p.secretsAt(ref.Path)...)
	}
	return sortedSecrets(out)
}

// namedBySecret reports whether the identity of an object may be made of what a Secret
// holds. Where the text does not have it, the whole object counts.
func (p *Program) namedBySecret(component, object string) bool {
	place := "identity of " + component + "/" + object
	if known, ok := p.index.rests.Load(place); ok {
		return known == true
	}
	s := &secretText{index: p.index}
	declared := s.under(s.under(s.component(component), "objects", 0), object, 0)
	meta := s.under(declared, "metadata", 0)
	name := s.under(meta, "name", 0)
	if len(name) == 0 {
		name = meta
	}
	names := slices.Concat(s.under(declared, "apiVersion", 0), s.under(declared, "kind", 0), name, s.under(meta, "namespace", 0))
	if s.foreign || p.index.foreign || len(name) == 0 {
		names = declared
	}
	out := len(p.secretsOf(names)) > 0
	if p.index.mayName(component, object) {
		p.index.rests.Store(place, out)
	}
	return out
}

// secretsAt returns the Secrets into whose content a reference may lead.
func (p *Program) secretsAt(path []string) []SecretRef {
	var below []string
	var at SecretRef
	switch {
	case path[0] == "cr", len(path) == 1 && path[0] == "components":
		return nil // what is written below components is followed
	case path[0] == "components" && (len(path) < 3 || path[2] != "objects"):
		return nil
	case path[0] == "inputs" && len(path) > 1:
		at, below = SecretRef{Input: path[1]}, path[2:]
		if len(below) > 0 && !strings.HasPrefix(below[0], "object") {
			return nil
		}
		if skip := 1; len(below) > 0 {
			if below[0] == "objects" {
				skip = 2
			}
			below = below[min(skip, len(below)):]
		}
	case path[0] == "live" && len(path) > 2:
		at, below = SecretRef{Component: path[1], Object: path[2]}, path[3:]
	case path[0] == "components" && len(path) > 3:
		at, below = SecretRef{Component: path[1], Object: path[3]}, path[4:]
	default:
		return p.allSecrets()
	}
	if !holdsContent(below) || !p.maybeSecret(at) {
		return nil
	}
	return []SecretRef{at}
}

// holdsContent reports whether what is at a path of a Secret may be secret.
func holdsContent(path []string) bool {
	switch {
	case len(path) == 0, slices.Contains(secretFields, path[0]):
		return true
	case path[0] != "metadata":
		return false
	}
	return len(path) == 1 || path[1] == "annotations" && (len(path) == 2 || path[2] == lastApplied)
}

// maybeSecret reports whether the text leaves it open that an object is a Secret, or says
// so.
func (p *Program) maybeSecret(ref SecretRef) bool {
	path := []string{"inputs", ref.Input}
	if ref.Input == "" {
		path = []string{"components", ref.Component, "objects", ref.Object}
	}
	kind := (&copies{program: p}).kindOf(path, (&secretText{index: p.index}).at(path))
	return kind == "" || kind == secretKind
}

// allSecrets returns all Secrets of which the text has the names.
func (p *Program) allSecrets() []SecretRef {
	if known, ok := p.index.rests.Load(""); ok {
		out, _ := known.([]SecretRef)
		return out
	}
	var out []SecretRef
	for name := range p.index.names["inputs"].names {
		out = append(out, SecretRef{Input: name})
	}
	for _, component := range p.index.order {
		for object := range p.index.names["components."+component+".objects"].names {
			out = append(out, SecretRef{Component: component, Object: object})
		}
	}
	out = slices.DeleteFunc(out, func(ref SecretRef) bool { return !p.maybeSecret(ref) })
	p.index.rests.Store("", sortedSecrets(out))
	return sortedSecrets(out)
}

func sortedSecrets(all []SecretRef) []SecretRef {
	seen := map[SecretRef]bool{}
	for _, ref := range all {
		seen[ref] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b SecretRef) int {
		return cmp.Or(strings.Compare(a.Input, b.Input), strings.Compare(a.Component, b.Component), strings.Compare(a.Object, b.Object))
	})
}
