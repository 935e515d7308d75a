package vet

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/program"
)

// Kinds returns the kinds of the objects that a package renders, in order, as far as they
// can be told without a custom resource.
func Kinds(p *program.Program) []schema.GroupKind {
	v := newView(p, nil)
	components := v.template
	hooks := p.TemplateHooks()
	for _, s := range v.samples {
		components = append(components, s.rollout.Components...)
		hooks = append(hooks, s.rollout.Hooks...)
	}
	for _, h := range hooks {
		components = append(components, h.Component)
	}
	var out []schema.GroupKind
	for _, c := range components {
		for _, o := range c.Objects {
			if kind := o.Identity.GroupKind(); o.Identity.Version != "" && kind.Kind != "" && !slices.Contains(out, kind) {
				out = append(out, kind)
			}
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}
