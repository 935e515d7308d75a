package program

import (
	"maps"
	"slices"
	"strings"
)

// trackingKeys are the labels and annotations by which tools recognise what they have applied. A tool that finds
// one on an object that its source does not have takes the object for its own, and deletes it; the engine would create
// it again, and so on.
var trackingKeys = map[string]bool{
	"app.kubernetes.io/instance":                       true, // Argo CD, where it tracks by label
	"kubectl.kubernetes.io/last-applied-configuration": true, // it is what was applied of the resource, not of an object
	"applyset.kubernetes.io/part-of":                   true, // kubectl apply --prune --applyset
	"config.k8s.io/owning-inventory":                   true, // cli-utils
}

// trackingDomains are the domains all of whose labels and annotations are such marks, or requests to the tool
// about the resource. Domains below them count as well.
var trackingDomains = []string{
	"argocd.argoproj.io",
	"fluxcd.io", // kustomize.toolkit.fluxcd.io, helm.toolkit.fluxcd.io, reconcile.fluxcd.io
	"helm.sh",   // meta.helm.sh
	"kapp.k14s.io",
}

// isTracking reports whether a label or annotation of a custom resource is for the tool that has applied it. No
// package sees it.
func isTracking(key string) bool {
	if trackingKeys[key] {
		return true
	}
	domain, _, qualified := strings.Cut(key, "/")
	return qualified && slices.ContainsFunc(trackingDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// withoutTracking returns a custom resource without the labels and annotations that are for the tool that has applied
// it. The given one stays as it is.
func withoutTracking(cr map[string]any) map[string]any {
	meta, _ := cr["metadata"].(map[string]any)
	for _, field := range freeMetadata {
		all, ok := meta[field].(map[string]any)
		if !ok {
			continue
		}
		if kept := untracked(all); len(kept) < len(all) {
			meta = with(meta, field, kept)
			cr = with(cr, "metadata", meta)
		}
	}
	return cr
}

// untracked returns labels or annotations without those that are for a tool. It is the same map if there are none.
func untracked(all map[string]any) map[string]any {
	for key := range all {
		if isTracking(key) {
			out := maps.Clone(all)
			maps.DeleteFunc(out, func(key string, _ any) bool { return isTracking(key) })
			return out
		}
	}
	return all
}
