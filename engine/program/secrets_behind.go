package program

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"operetta.dev/engine/object"
	"operetta.dev/engine/program/syntax"
)

// Secrets say what of a package and of its sessions is secret.
type Secrets struct {
	index  *syntax.Index
	static *Static
	// literals are the secrets that the package itself has written.
	literals []string
	// rests are the Secrets that objects rest on, by component and object.
	rests sync.Map
}

// behind returns the Secrets from which the content of an object of a component, or
// of a hook, may come. The digest of such an object needs a key: whoever reads a digest
// without one could guess what the Secret holds. If the text does not show which, it returns all.
func (s *Secrets) behind(component, object string) []SecretRef {
	return s.remembered(component, object, "content", func() []SecretRef {
		refs, shown := s.index.Secrets().RestsOn(component, object)
		if !shown {
			return s.all()
		}
		return s.reachedBy(refs)
	})
}

// mayIdentify reports whether the identity of an object may come from a Secret.
func (s *Secrets) mayIdentify(component, object string) bool {
	return len(s.remembered(component, object, "identity", func() []SecretRef {
		return s.reachedBy(s.index.Secrets().IdentityRestsOn(component, object))
	})) > 0
}

// remembered caches the Secrets behind an object, if the text has the names of the object. Computed
// names are not cached, because there may be any number of them.
func (s *Secrets) remembered(component, object, what string, find func() []SecretRef) []SecretRef {
	key := [3]string{component, object, what}
	if known, ok := s.rests.Load(key); ok {
		out, _ := known.([]SecretRef)
		return out
	}
	out := find()
	if what == "all" || !s.index.PositionOf("components", component, "objects", object).IsZero() {
		s.rests.Store(key, out)
	}
	return out
}

// reachedBy returns the Secrets into whose content some references may lead.
func (s *Secrets) reachedBy(refs []syntax.Reference) []SecretRef {
	var out []SecretRef
	for _, ref := range refs {
		of, below, ok := ref.Object()
		switch root := ref.Path[0]; {
		case ok:
		case root == "inputs" && len(ref.Path) == 2:
			of = ref.Path
		case root == "live", root == "inputs" && len(ref.Path) == 1, root == "components" && len(ref.Path) == 3 && ref.Path[2] == "objects":
			out = append(out, s.all()...)
			continue
		default:
			continue // references to other parts of components have been followed
		}
		if holdsContent(below) && s.mayBeSecret(of) {
			out = append(out, secretAt(of))
		}
	}
	return sortedSecrets(out)
}

// secretAt returns the Secret that is an input, or an object of a component, by its path.
func secretAt(path []string) SecretRef {
	if path[0] == "inputs" {
		return SecretRef{Input: path[1]}
	}
	return SecretRef{Component: path[1], Object: path[3]}
}

// holdsContent reports whether the value at a path of a Secret may be secret.
func holdsContent(path []string) bool {
	switch {
	case len(path) == 0, slices.Contains(secretFields, path[0]):
		return true
	case path[0] != "metadata":
		return false
	}
	return len(path) == 1 || path[1] == "annotations" && (len(path) == 2 || path[2] == lastApplied)
}

// mayBeSecret reports whether the object at a path is, or may be, a Secret.
func (s *Secrets) mayBeSecret(path []string) bool {
	return object.MayBeSecret(s.static.KindAt(path))
}

// all returns all Secrets whose names the text has.
func (s *Secrets) all() []SecretRef {
	return s.remembered("", "", "all", func() []SecretRef {
		var out []SecretRef
		add := func(path ...string) {
			names, _ := s.index.Names(path...)
			for _, name := range names {
				if at := append(slices.Clip(path), name); s.mayBeSecret(at) {
					out = append(out, secretAt(at))
				}
			}
		}
		add("inputs")
		for _, component := range s.index.Components() {
			add("components", component, "objects")
		}
		return sortedSecrets(out)
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
