package program

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/program/syntax"
)

// What an object that is no Secret is made of may come from one. Then its digest would
// tell what that holds to whoever guesses, and it needs a key. As with the fields of the
// spec, the text says which Secrets those may be; where it does not, all that there are.

// secretsBehind returns the Secrets that an object of a component, or of a hook, may rest
// on.
func (p *Program) secretsBehind(component, object string) []SecretRef {
	return p.remembered(component, object, "content", func() []SecretRef {
		refs, shown := p.index.RestsOn(component, object)
		if !shown {
			return p.allSecrets()
		}
		return p.secretsIn(refs)
	})
}

// namedBySecret reports whether the identity of an object may be made of what a Secret
// holds.
func (p *Program) namedBySecret(component, object string) bool {
	return len(p.remembered(component, object, "identity", func() []SecretRef {
		return p.secretsIn(p.index.IdentityRestsOn(component, object))
	})) > 0
}

// remembered returns what the text says of an object, and finds it once for each object
// whose names the text has: of other names there may be any number.
func (p *Program) remembered(component, object, what string, find func() []SecretRef) []SecretRef {
	key := [3]string{component, object, what}
	if known, ok := p.rests.Load(key); ok {
		out, _ := known.([]SecretRef)
		return out
	}
	out := find()
	if what == "all" || !p.index.PositionOf("components", component, "objects", object).IsZero() {
		p.rests.Store(key, out)
	}
	return out
}

// secretsIn returns the Secrets into whose content some references may lead.
func (p *Program) secretsIn(refs []syntax.Reference) []SecretRef {
	var out []SecretRef
	for _, ref := range refs {
		out = append(out, p.secretsAt(ref.Path)...)
	}
	return sortedSecrets(out)
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
	kind := p.KindAt(path)
	return kind == "" || kind == secretKind
}

// KindAt returns the kind of the object or input at a path, or "" if that is not known
// without a custom resource.
func (p *Program) KindAt(path []string) string {
	var sels []cue.Selector
	for _, name := range append(slices.Clip(path), "kind") {
		sels = append(sels, cue.Str(name))
	}
	return cmp.Or(stringOr(p.static.LookupPath(cue.MakePath(sels...)), ""), p.index.KindAt(path))
}

// allSecrets returns all Secrets of which the text has the names.
func (p *Program) allSecrets() []SecretRef {
	return p.remembered("", "", "all", func() []SecretRef {
		var out []SecretRef
		inputs, _ := p.index.Names("inputs")
		for _, name := range inputs {
			out = append(out, SecretRef{Input: name})
		}
		for _, component := range p.index.Components() {
			objects, _ := p.index.Names("components", component, "objects")
			for _, object := range objects {
				out = append(out, SecretRef{Component: component, Object: object})
			}
		}
		return sortedSecrets(slices.DeleteFunc(out, func(ref SecretRef) bool { return !p.maybeSecret(ref) }))
	})
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
