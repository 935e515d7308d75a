package importer

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/check"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun/diff"
	engineobject "operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/scaffold"
	"operetta.dev/engine/source"
)

// maxReasons bounds how many differences are reported.
const maxReasons = 20

// compare renders the package for the sample, and errors with a RefusedError if it does not render what was imported.
func (i *importing) compare(ctx context.Context, files []scaffold.File) error {
	texts := map[string]string{}
	for _, f := range files {
		texts[f.Path[len(i.Package.Name)+1:]] = string(f.Content)
	}
	delete(texts, "sample.yaml")
	delete(texts, i.Package.Name+source.TestSuffix)
	snapshot, err := source.Loader{}.Files(i.Package.Name, "import", ".", texts)
	if err != nil {
		return err
	}
	p, err := program.Load(snapshot)
	if err != nil {
		return wrongPackage("", texts, err)
	}
	if i.api != nil {
		notes, err := i.api.compare(p)
		if err != nil {
			return err
		}
		i.notes = append(i.notes, notes...)
		simplest, unmade := check.SimplestResource(p)
		if unmade != "" {
			return &RefusedError{[]string{i.api.at + ": " + unmade}}
		}
		i.simplest = simplest["spec"]
	}
	var definitions []map[string]any
	for _, w := range i.wanted {
		if _, _, defines := cluster.DefinedBy(w); defines {
			definitions = append(definitions, w)
		}
	}
	out, err := render.Render(ctx, p, render.Input{CR: i.sample(), Manifests: definitions})
	if err != nil {
		return err
	}
	if faults := slices.Concat(out.Invalid, out.Faults); len(faults) > 0 {
		return wrongPackage("", texts, faults)
	}
	if reasons := i.differences(out); len(reasons) > 0 {
		return &RefusedError{reasons[:min(len(reasons), maxReasons)]}
	}
	return nil
}

// differences returns how the rendered objects differ from those that were imported.
func (i *importing) differences(out render.Output) []string {
	rendered := map[cluster.Ref]map[string]any{}
	for _, o := range out.Objects() {
		rendered[cluster.RefOf(&unstructured.Unstructured{Object: o.Manifest}).Identity()] = o.Manifest
	}
	mask := &diff.Mask{}
	var reasons []string
	for _, w := range i.wanted {
		want := &unstructured.Unstructured{Object: w}
		ref := cluster.RefOf(want).Identity()
		got, exists := rendered[ref]
		if !exists && want.GetNamespace() == "" {
			want = want.DeepCopy()
			want.SetNamespace(i.sampleNamespace)
			ref = cluster.RefOf(want).Identity()
			got, exists = rendered[ref]
		}
		delete(rendered, ref)
		switch {
		case !exists:
			reasons = append(reasons, fmt.Sprintf("%s would not be rendered", ref))
		case !engineobject.Equal(want.Object, got):
			for _, f := range mask.Fields(want, &unstructured.Unstructured{Object: got}) {
				reasons = append(reasons, fmt.Sprintf("%s would be rendered otherwise: %s", ref, f))
			}
			if len(reasons) == 0 {
				reasons = append(reasons, fmt.Sprintf("%s would be rendered otherwise", ref))
			}
		}
	}
	for ref := range rendered {
		reasons = append(reasons, fmt.Sprintf("%s would be rendered, and was not imported", ref))
	}
	return reasons
}
