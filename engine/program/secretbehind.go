package program

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/program/syntax"
)

// secretsBehind returns the Secrets from which the content of an object of a component, or
// of a hook, may come. The digest of such an object needs a key: whoever reads a digest
// without one could guess what the Secret holds. If the text does not show which, it returns all.
func (p *Program) secretsBehind(component, object string) []SecretRef {
	return p.remembered(component, object, "content", func() []SecretRef {
		refs, shown := p.index.RestsOn(component, object)
		if !shown {
			return p.allSecrets()
		}
		return p.secretsOf(refs)
	})
}

// namedBySecret reports whether the identity of an object may come from a Secret.
func (p *Program) namedBySecret(component, object string) bool {
	return len(p.remembered(component, object, "identity", func() []SecretRef {
		return p.secretsOf(p.index.IdentityRestsOn(component, object))
	})) > 0
}

// remembered caches the Secrets behind an object, if the text has the names of the object. Computed
// names are not cached, because there may be any number of them.
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

// secretsOf returns the Secrets into whose content some references may lead.
func (p *Program) secretsOf(refs []syntax.Reference) []SecretRef {
	var out []SecretRef
	for _, ref := range refs {
		of, below, ok := ref.Object()
		switch root := ref.Path[0]; {
		case ok:
		case root == "inputs" && len(ref.Path) == 2:
			of = ref.Path
		case root == "live", root == "inputs" && len(ref.Path) == 1, root == "components" && len(ref.Path) == 3 && ref.Path[2] == "objects":
			out = append(out, p.allSecrets()...)
			continue
		default:
			continue // references to other parts of components have been followed
		}
		if holdsContent(below) && p.maybeSecret(of) {
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

// maybeSecret reports whether the object at a path is, or may be, a Secret.
func (p *Program) maybeSecret(path []string) bool {
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

// allSecrets returns all Secrets whose names the text has.
func (p *Program) allSecrets() []SecretRef {
	return p.remembered("", "", "all", func() []SecretRef {
		var out []SecretRef
		add := func(path ...string) {
			names, _ := p.index.Names(path...)
			for _, name := range names {
				if at := append(slices.Clip(path), name); p.maybeSecret(at) {
					out = append(out, secretAt(at))
				}
			}
		}
		add("inputs")
		for _, component := range p.index.Components() {
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
