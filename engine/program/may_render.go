package program

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/build"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/program/syntax"
)

// MayRender reports whether an object of the package may have a kind, in any of its branches. It goes by the text of the package,
// and is true for each kind if the text does not show the kind of every object.
func (p *Program) MayRender(kind schema.GroupKind) bool {
	return p.renderable.any || slices.ContainsFunc(p.renderable.kinds, func(k renderableKind) bool { return k.is(kind) })
}

// renderable are the kinds that the objects of a package may have.
type renderable struct {
	// any is true if the text leaves the kind of an object open.
	any   bool
	kinds []renderableKind
}

// A renderableKind is a kind as the text shows it.
type renderableKind struct {
	name string
	// group is its API group. It counts only if groupKnown is true.
	group      string
	groupKnown bool
	// word is what the group of a Kubernetes type begins with, if the object has the kind from such a type.
	word string
}

// is reports whether it may be a kind.
func (k renderableKind) is(kind schema.GroupKind) bool {
	switch {
	case k.name != kind.Kind:
		return false
	case k.word != "":
		first, _, _ := strings.Cut(kind.Group, ".")
		return first == k.word || k.word == coreWord && kind.Group == ""
	case k.groupKnown:
		return k.group == kind.Group
	}
	return true
}

// schemasPath is what the import paths of the contract, of health and of Kubernetes types begin with.
const schemasPath = "operetta.dev/schemas/"

// coreWord stands for the API group without a name in the import paths of Kubernetes types.
const coreWord = "core"

// renderableOf reads the kinds from the text of a package. That shows no objects and components of packages that it imports, but those
// of the contract and of Kubernetes types.
func renderableOf(x *syntax.Index, inst *build.Instance) renderable {
	objects, _, wholes := x.SourceObjects()
	imports := slices.ContainsFunc(inst.Dependencies(), func(dep *build.Instance) bool { return !strings.HasPrefix(dep.ImportPath, schemasPath) })
	out := renderable{any: imports || x.Foreign() || len(wholes) > 0}
	for _, o := range objects {
		names := o.Choices("kind")
		if constrains(o.Path(), names) {
			continue
		}
		kinds, known := renderableKinds(names, o.Choices("apiVersion"))
		out.any = out.any || !known
		out.kinds = append(out.kinds, kinds...)
	}
	return out
}

// constrains reports whether an object in the text is a pattern that says nothing about kinds, as those of overlays: it adds no object,
// and what it adds to one has its kind from elsewhere.
func constrains(path []string, kinds syntax.Choices) bool {
	return len(kinds.Texts)+len(kinds.Types)+len(kinds.Sources)+len(kinds.Computed) == 0 &&
		slices.ContainsFunc(path, func(label string) bool { return strings.HasPrefix(label, "[") })
}

// renderableKinds returns the kinds that an object may have, and false if there may be others.
func renderableKinds(kinds, versions syntax.Choices) (out []renderableKind, known bool) {
	for _, t := range kinds.Types {
		word, _, versioned := strings.Cut(strings.TrimPrefix(t.Package, TypesPath), "/")
		if !strings.HasPrefix(t.Package, TypesPath) || !versioned {
			return nil, false
		}
		out = append(out, renderableKind{name: t.Name, word: word})
	}
	typed := len(out) > 0
	for _, name := range kinds.Texts {
		if typed || len(versions.Texts) == 0 || len(versions.Sources)+len(versions.Computed) > 0 {
			out = append(out, renderableKind{name: name})
			continue
		}
		for _, version := range versions.Texts {
			out = append(out, renderableKind{name: name, group: schema.FromAPIVersionAndKind(version, name).Group, groupKnown: true})
		}
	}
	return out, len(out) > 0 && len(kinds.Sources)+len(kinds.Computed) == 0
}
