package packages

import (
	"cmp"
	"slices"
)

// A demand is what resources want of a version that they are pinned to.
type demand struct {
	// resources is how many are pinned to it, and has is how many of them it has reconciled last.
	resources, has int
}

// demands returns what resources want of the versions that they are pinned to.
func demands(all []Resource) map[string]demand {
	out := map[string]demand{}
	for _, u := range all {
		if u.Pin == "" {
			continue
		}
		d := out[u.Pin]
		d.resources++
		if u.Digest == u.Pin {
			d.has++
		}
		out[u.Pin] = d
	}
	return out
}

// wantedRevisions returns the kept versions that resources are pinned to, those first that get a place first. Versions that a
// resource has come before those that are only asked for: a user who asks for many must not take a place from who has one.
func (s *state) wantedRevisions(asked map[string]demand) []revision {
	var out []revision
	for _, v := range s.revisions {
		if asked[v.digest].resources > 0 && v.digest != s.served.Digest() {
			out = append(out, v)
		}
	}
	first := func(is bool) int {
		if is {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b revision) int {
		return cmp.Or(
			cmp.Compare(first(asked[a.digest].has > 0), first(asked[b.digest].has > 0)),
			cmp.Compare(first(s.pinned[a.digest] != nil), first(s.pinned[b.digest] != nil)),
			cmp.Compare(asked[b.digest].resources, asked[a.digest].resources),
		)
	})
	return out
}
