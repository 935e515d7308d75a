package controller

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/test/inline"
)

// cached returns what a cache of custom resources keeps of one that has a megabyte in its spec besides.
func cached(t *testing.T, text string) (whole, kept *unstructured.Unstructured) {
	t.Helper()
	whole = inline.Object(t, text)
	whole.Object["spec"] = map[string]any{"blob": strings.Repeat("x", 1<<20)}
	out, err := watch.TransformResource(logr.Discard())(whole.DeepCopy())
	kept, _ = out.(*unstructured.Unstructured)
	if err != nil || kept == nil || kept.Object["spec"] != nil {
		t.Fatalf("it is kept whole (error %v)", err)
	}
	return whole, kept
}

// A canary counts a large resource by what a cache keeps of it, and a reconcile chooses the version of the package by all of it.
func TestALargeResourceIsTheSameForACanary(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"labels":           "{metadata: {name: a, uid: u, labels: {tier: test, team: a}}}",
		"a pin":            "{metadata: {name: a, annotations: {operetta.dev/revision-pin: 'sha256:0123', other: x}}}",
		"a pause":          "{metadata: {name: a, annotations: {operetta.dev/paused: 'true'}}}",
		"a deletion":       "{metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}}",
		"ready":            "{metadata: {name: a}, status: {package: {digest: 'sha256:0123'}, conditions: [{type: Other, status: 'False'}, {type: Ready, status: 'True', reason: Ready, message: fine, lastTransitionTime: '2026-01-01T00:00:00Z'}]}}",
		"failed":           "{metadata: {name: a}, status: {package: {digest: 'sha256:0123'}, conditions: [{type: Stalled, status: 'True', reason: Failed}, {type: Ready, status: 'False', reason: Failed, lastTransitionTime: '2026-01-01T00:00:00Z'}]}}",
		"no status at all": "{metadata: {name: a}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, kept := cached(t, text)
			if diff := cmp.Diff(resourceOf(whole), resourceOf(kept)); diff != "" {
				t.Errorf("(-whole +kept):\n%s", diff)
			}
		})
	}
}

// Who may write labels must not fill the cache.
func TestManyLabelsOfALargeResourceAreNotKept(t *testing.T) {
	t.Parallel()
	whole, _ := cached(t, "{metadata: {name: a}}")
	whole.SetLabels(map[string]string{"long": strings.Repeat("x", 5<<10)})
	out, err := watch.TransformResource(logr.Discard())(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got := resourceOf(out.(*unstructured.Unstructured)).Labels; len(got) > 0 {
		t.Errorf("%d labels are kept", len(got))
	}
}

// Of two Packages of one kind, the one that served it serves it: its status says so, however much content it has.
func TestALargePackageKeepsTheKindThatItServes(t *testing.T) {
	t.Parallel()
	_, kept := cached(t, "{apiVersion: operetta.dev/v1alpha1, kind: Package, metadata: {name: z}, status: {group: example.com, kind: Thing, versions: [v1], digest: x}}")
	if diff := cmp.Diff(map[string]any{"group": "example.com", "kind": "Thing"}, kept.Object["status"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
