package status

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAComponentIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		entry  any
		want   *componentStatus
	}{
		"all":          {"each field is its own", componentStatus{"a", Waiting, ReasonNotReady, "m", Applied, "2026-01-02T03:04:05Z", "b", nil}.entry(), &componentStatus{"a", Waiting, ReasonNotReady, "m", Applied, "2026-01-02T03:04:05Z", "b", nil}},
		"the required": {"the others are not written", componentStatus{Name: "a", State: Verified, Reason: ReasonReady}.entry(), &componentStatus{Name: "a", State: Verified, Reason: ReasonReady}},
		"a null":       {"it is as good as missing", map[string]any{"name": "a", "message": nil}, &componentStatus{Name: "a"}},
		"more":         {"it is of a later version", map[string]any{"name": "a", "weight": int64(3)}, &componentStatus{Name: "a"}},
		"a number":     {"no text can be one", map[string]any{"name": "a", "since": int64(3)}, nil},
		"no object":    {"somebody has written something else", "a", nil},
		"nothing":      {"somebody has written something else", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got *componentStatus
			if s, ok := readEntry(row.entry); ok {
				got = &s
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
	written := componentStatus{Name: "a", State: Verified, Reason: ReasonReady}.entry()
	if diff := cmp.Diff(map[string]any{"name": "a", "state": "Verified", "reason": "Ready"}, written); diff != "" {
		t.Errorf("what is empty is left out (-want +got):\n%s", diff)
	}
	if copied := (&unstructured.Unstructured{Object: written}).DeepCopy(); cmp.Diff(written, copied.Object) != "" {
		t.Errorf("a typed text is no JSON value: %v", written)
	}
}

// A package edit makes every component wait, and each of them asks since when.
func TestSinceWhenOneComponentWaitsCostsTheSameAmongMany(t *testing.T) { //nolint:paralleltest // it counts allocations
	c := Component{Name: "c-0", State: Waiting, Reason: ReasonNotReady}
	allocated := func(n int) float64 {
		var entries []any
		for i := range n {
			entries = append(entries, componentStatus{Name: fmt.Sprintf("c-%d", n-1-i), State: Waiting, Reason: ReasonNotReady, Since: "2026-01-02T03:04:05Z"}.entry())
		}
		before := map[string]any{"observedGeneration": int64(1), "components": entries}
		return testing.AllocsPerRun(10, func() {
			if since := Since(before, c, 1, time.Unix(0, 0)); since.Year() != 2026 {
				t.Errorf("since %s", since)
			}
		})
	}
	if one, many := allocated(1), allocated(200); many > one {
		t.Errorf("%v allocations among 200 components, and %v for one alone", many, one)
	}
}
