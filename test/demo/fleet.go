package main

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	"operetta.dev/test/internal/screen"
)

// A fleet is all resources of the Package at one moment, while a revision of it goes to some of them first.
type fleet struct {
	resources []resource
	// before are the versions that they had before the revision.
	before []string
	// phase is how far the canary is; "" if there is none of this revision yet.
	phase string
}

// The phases of a canary that has not ended.
var underway = []string{"Progressing", "Ready"}

// hasNew reports whether a resource was reconciled with the revision.
func (f fleet) hasNew(r resource) bool {
	digest := r.Status.Package.Digest
	return digest != "" && !slices.Contains(f.before, digest)
}

// counts returns how many resources have the revision, and how many have what was before.
func (f fleet) counts() (changed, spared int) {
	for _, r := range f.resources {
		if f.hasNew(r) {
			changed++
		}
	}
	return changed, len(f.resources) - changed
}

// tried reports whether the canary goes on, and some of the resources have the revision. It errors if they are more than its share.
func (f fleet) tried() (bool, error) {
	changed, spared := f.counts()
	switch most := (len(f.resources)*canaryShare + 99) / 100; { // it is rounded up
	case !slices.Contains(underway, f.phase):
		return false, nil
	case changed > most:
		return false, fmt.Errorf("%d of %d resources have the revision while its canary is %s", changed, len(f.resources), f.phase)
	}
	return changed > 0 && spared > 0, nil
}

// settled reports whether all resources are Ready, and have the revision if it was promoted, or else what was before.
func (f fleet) settled(promoted bool) bool {
	return !slices.ContainsFunc(f.resources, func(r resource) bool { return !r.ready() || f.hasNew(r) != promoted })
}

// draw returns the lines of a picture: the Package, and its resources below it.
func (f fleet) draw(ink screen.Ink) []string {
	changed, spared := f.counts()
	head := ink.Bold("Package/"+packageName) + "  "
	if f.phase != "" {
		head += "canary " + f.phase + "  "
	}
	lines := []string{head + ink.Dim(fmt.Sprintf("%d new, %d old", changed, spared))}
	for i, r := range f.resources {
		branch, version := "├─ ", ink.Dim("old")
		if i == len(f.resources)-1 {
			branch = "└─ "
		}
		if f.hasNew(r) {
			version = "new"
		}
		lines = append(lines, branch+r.subject()+"  "+phaseInk(ink, r.Status.Phase)(r.Status.Phase)+"  "+version)
	}
	return lines
}

// versions returns the versions that resources have.
func versions(resources []resource) []string {
	var out []string
	for _, r := range resources {
		out = append(out, r.Status.Package.Digest)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// kindred returns all resources of the kind of the sample, in the order of their names.
func (d *demo) kindred(ctx context.Context) ([]resource, error) {
	info, err := d.cluster.kind(ctx, kindKey{d.sampled.APIVersion, d.sampled.Kind})
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []resource `json:"items"`
	}
	if err := d.cluster.get(ctx, path.Join(groupPath(d.sampled.APIVersion), info.plural), &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		list.Items[i].Kind = d.sampled.Kind // a list leaves it out where the kind has one version
	}
	slices.SortFunc(list.Items, func(a, b resource) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return list.Items, nil
}

// applySmall applies further resources of the Package, so that a share of all is not all.
func (d *demo) applySmall(ctx context.Context) error {
	st := d.screen.Start(fmt.Sprintf("apply %d further resources", smallOnes))
	var err error
	for i := range smallOnes {
		if err == nil {
			err = d.putObject(ctx, map[string]any{
				"apiVersion": d.sampled.APIVersion, "kind": d.sampled.Kind,
				"metadata": map[string]any{"name": fmt.Sprint("small-", i+1), "namespace": d.sampled.Metadata.Namespace},
				"spec":     map[string]any{"image": "nginx:1.25", "replicas": 1},
			})
		}
	}
	if err == nil {
		err = d.poll(ctx, d.timeout, "all resources to become Ready", func(ctx context.Context) (bool, error) {
			all, err := d.kindred(ctx)
			f := fleet{resources: all, before: versions(all)}
			return err == nil && len(all) > smallOnes && f.settled(false), err
		})
	}
	st.End(err, fmt.Sprintf("of one replica each; a canary of %d %% of all is one of them", canaryShare))
	return err
}
