package vet

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/program/syntax"
)

// Kinds returns the kinds of the objects that the package renders, sorted, as far as they are known
// without a custom resource.
func (e *Examination) Kinds() []schema.GroupKind {
	v := e.view()
	components := slices.Clone(v.template)
	for _, s := range v.samples {
		components = append(components, s.rollout.Components...)
	}
	for _, h := range v.hooks() {
		components = append(components, h.Component)
	}
	var out []schema.GroupKind
	for _, c := range components {
		for _, o := range c.Objects {
			if o.Identity.Version != "" && o.Identity.Kind != "" {
				out = append(out, o.Identity.GroupKind())
			}
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// kindsOf returns the kinds that an object or an input may have: those in the text, and those that
// the schema lets somebody else choose from. freely reports whether somebody else may choose any.
func (v *view) kindsOf(w syntax.SourceObject) (kinds []string, freely bool) {
	kinds = slices.Clone(w.Kinds)
	for _, o := range w.ExternalSources("kind") {
		if _, open := v.whoWrites(o, false); open {
			freely = true
			continue
		}
		switch path := slices.Concat(o.Path, o.Below); {
		case path[0] == "config":
			kinds = append(kinds, textsAt(v.Config().Schema(), path[1:], 0)...)
		case len(path) > 1 && path[1] == "spec":
			kinds = append(kinds, textsAt(v.CRSchema(), path[1:], 0)...)
		}
	}
	return kinds, freely
}
