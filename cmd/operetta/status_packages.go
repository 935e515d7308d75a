package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/redact"
)

// printCanaries prints a line for each Package whose canary is in progress or has gone back. If the user may not list Packages, it says so.
func printCanaries(ctx context.Context, s streams, f clusterFlags) error {
	_, live, err := f.connect()
	if err != nil {
		return err
	}
	found, err := live.ListLive(ctx, cluster.Selection{Kind: packages.Kind})
	if cluster.IsKindNotServed(err) {
		return nil // the cluster has packages in folders only
	}
	if err != nil {
		printLinef(s.err, "note: Packages are not listed: %v", err)
		return nil
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, u := range found {
		if line := canaryLine(u); line != "" {
			printLinef(s.out, "%s", line)
		}
	}
	return nil
}

// canaryLine says how far the canary of a Package is, or is "".
func canaryLine(u *unstructured.Unstructured) string {
	text := func(field string) string {
		t, _, _ := unstructured.NestedString(u.Object, "status", "canary", field)
		return t
	}
	count := func(field string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, "status", "canary", field)
		return n
	}
	head := "package/" + u.GetName() + "  canary of " + shortDigest(text("digest")) + " "
	switch phase := packages.CanaryPhase(text("phase")); phase {
	case packages.CanaryProgressing, packages.CanaryReady:
		return head + string(phase) + fmt.Sprintf(": %d of %d resources are ready", count("ready"), count("resources"))
	case packages.CanaryRolledBack:
		return head + string(phase) + ": " + redact.OneLine(text("why"))
	case packages.CanaryPromoted:
	}
	return ""
}
