package check

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/fault"
	"operetta.dev/test/inline"
)

func TestAsFewItemsAsShowSomethingAreLeft(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		items  int
		needed []int
		tries  int
	}{
		"none":                 {"it shows without any", 1000, nil, 1},
		"one of many":          {"halves are left out at once", 1000, []int{617}, 40},
		"the first and last":   {"both ends stay", 64, []int{0, 63}, 40},
		"all":                  {"each is tried", 4, []int{0, 1, 2, 3}, 10},
		"nothing to leave out": {"there is none", 0, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var items []int
			for i := range row.items {
				items = append(items, i)
			}
			tries := 0
			got := fewest(minimizer{func() bool { return false }}, items, func(left []int) bool {
				tries++
				return !slices.ContainsFunc(row.needed, func(n int) bool { return !slices.Contains(left, n) })
			})
			if diff := cmp.Diff(row.needed, slices.Clip(append([]int(nil), got...))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if tries > row.tries {
				t.Errorf("%s: %d tries, and %d are enough", row.reason, tries, row.tries)
			}
		})
	}
}

// TestLiveObjectsAreMadeSmallWithinABound: of 400 fields that all matter, each would take a rendering.
func TestLiveObjectsAreMadeSmallWithinABound(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, `package shop
import "operetta.dev/schemas/operator"
operator.#Controller
group: "shop.example", kind: "Shop"
versions: v1: spec: {}
cr: _
live: _
components: web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data?: _}
components: late: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "late", data: n: "\(len(live.web.cm.data))" & "0"}
`)
	data := map[string]any{}
	for i := range 400 {
		data[fmt.Sprintf("d%04d", i)] = "x"
	}
	live := []map[string]any{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "default"}, "data": data}}
	resource := map[string]any{"apiVersion": "shop.example/v1", "kind": "Shop", "metadata": map[string]any{"name": "a", "namespace": "default"}, "spec": map[string]any{}}
	tries := 0
	c := &checker{program: p, options: Options{Enough: func() bool { tries++; return false }}}
	found := fault.Fault{Path: "components.late.objects.cm.data.n", Message: `conflicting values "400" and "0"`}
	small := c.smallestLive(t.Context(), resource, problem{fault: found, live: live})
	if tries < 50 || tries > maxSmaller {
		t.Errorf("%d tries", tries)
	}
	if diff := cmp.Diff(live, small); diff != "" {
		t.Errorf("each field is needed (-want +got):\n%s", diff)
	}
	given := cmp.Diff(400, len(data))
	if given != "" {
		t.Errorf("what was given has changed: %s", given)
	}
}
