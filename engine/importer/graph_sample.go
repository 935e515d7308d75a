package importer

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/scaffold"
	"operetta.dev/engine/source"
	"sigs.k8s.io/yaml"
)

// A graphTrial is what a package does with its simplest resource.
type graphTrial struct {
	// sample is that resource.
	sample []byte
	// unset are the optional fields of its spec without which a component waits.
	unset []string
	// wrong says what is wrong with the package, if anything is.
	wrong *RefusedError
}

// try renders the package for its simplest resource. It errors with a RefusedError if there is none.
func (g *graphImport) try(ctx context.Context, file scaffold.File) (graphTrial, error) {
	files := map[string]string{path.Base(file.Path): string(file.Content)}
	snapshot, err := source.Loader{}.Files(g.name, "import", ".", files)
	if err != nil {
		return graphTrial{}, err
	}
	p, err := program.Load(snapshot)
	if err != nil {
		return graphTrial{}, wrongPackage(g.at+": ", files, err)
	}
	simplest, unmade := check.SimplestResource(p)
	if unmade != "" {
		return graphTrial{}, &RefusedError{[]string{g.at + ": " + unmade}}
	}
	out, err := render.Render(ctx, p, render.Input{CR: simplest})
	if err != nil {
		return graphTrial{}, err
	}
	t := graphTrial{unset: unsetIn(out)}
	if faults := slices.Concat(out.Invalid, out.Faults); len(faults) > 0 {
		t.wrong = wrongPackage(g.at+": ", files, faults)
	}
	t.sample, err = yaml.Marshal(simplest)
	return t, err
}

// unsetIn returns the optional fields of the spec without which a component waits.
func unsetIn(out render.Output) []string {
	var unset []string
	for _, c := range out.Components {
		unset = append(append(unset, c.Source.Unset...), c.Source.When.Unset)
	}
	return unset
}

// requiredNotes say which fields are required that are optional in the definition.
func (g *graphImport) requiredNotes() []string {
	var out []string
	for _, at := range slices.Sorted(maps.Keys(g.spec.required)) {
		out = append(out, fmt.Sprintf("%s: spec.schema.%s is required in the package: it has no default, and expressions need it; with kro, a resource without it is accepted and waits for ever", g.at, at))
	}
	return out
}
