package shadow

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun/diff"
)

const (
	// maxCandidates is how many objects a missing one is compared with.
	maxCandidates = 20
	// alikeFrom is how much of what is rendered an object has to have to be alike, in percent.
	alikeFrom = 50
)

// findRenamed notes for each missing object which of those that nothing renders it may be under another name.
func (c *comparison) findRenamed(ctx context.Context) error {
	for i, o := range c.out.Objects {
		if o.Relation != Missing {
			continue
		}
		wanted := c.renderedAs(o)
		if wanted == nil {
			continue
		}
		var err error
		if c.out.Objects[i].Alike, err = c.mostSimilar(ctx, wanted); err != nil {
			return err
		}
	}
	return nil
}

// mostSimilar returns the object that nothing renders and that is most like a rendered one, or "". That one cannot be
// read is no error: there is no hint then.
func (c *comparison) mostSimilar(ctx context.Context, wanted *unstructured.Unstructured) (string, error) {
	best, tried, name := 0, 0, ""
	for _, d := range c.dependents {
		if d.GroupKind() != wanted.GroupVersionKind().GroupKind() || c.wanted[d.Identity()] || tried == maxCandidates {
			continue
		}
		tried++
		ref := d.Ref
		ref.Version = wanted.GroupVersionKind().Version
		live, err := c.source.original(ctx, ref)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil || live == nil {
			continue
		}
		c.mask.Learn(live)
		if share := similarity(live, wanted); share >= alikeFrom && share > best {
			best, name = share, c.mask.Text(ref.String())
		}
	}
	return name, nil
}

// renderedAs returns what the package renders as an object, or nil.
func (c *comparison) renderedAs(o Object) *unstructured.Unstructured {
	for _, p := range c.preview.Components {
		for _, d := range p.Objects {
			ref := d.Ref()
			if c.mask.Text(ref.Kind) == o.Kind && c.mask.Text(ref.Namespace) == o.Namespace && c.mask.Text(ref.Name) == o.Name {
				return d.Manifest
			}
		}
	}
	return nil
}

// similarity returns how many of the values that are rendered an object has, in percent. One that renders none beside
// its name is like any object of its kind.
func similarity(live, rendered *unstructured.Unstructured) int {
	wanted := diff.WithoutOwnership(rendered)
	for _, field := range []string{"name", "namespace"} {
		unstructured.RemoveNestedField(wanted.Object, "metadata", field)
	}
	have, err := cluster.Canonical(live)
	if err != nil {
		return 0
	}
	same, all := 0, 0
	countEqual(have.Object, wanted.Object, &same, &all)
	if all == 0 {
		return 100
	}
	return 100 * same / all
}

// countEqual counts the values of what is wanted, and those of them that are there.
func countEqual(live, wanted any, same, all *int) {
	switch wanted := wanted.(type) {
	case map[string]any:
		m, _ := live.(map[string]any)
		for k, v := range wanted {
			if k != "apiVersion" && k != "kind" {
				countEqual(m[k], v, same, all)
			}
		}
	case []any:
		l, _ := live.([]any)
		for i, v := range wanted {
			var at any
			if i < len(l) {
				at = l[i]
			}
			countEqual(at, v, same, all)
		}
	case nil:
	default:
		*all++
		if fmt.Sprint(live) == fmt.Sprint(wanted) {
			*same++
		}
	}
}
