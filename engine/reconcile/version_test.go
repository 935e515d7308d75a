package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

func TestTheVersionThatAResourceRequests(t *testing.T) {
	t.Parallel()
	desired := map[string]any{"versions": map[string]any{"desired": "3"}}
	rows := []struct {
		reason  string
		spec    map[string]any
		before  map[string]any
		missing bool
		want    string
	}{
		{"the spec says it", map[string]any{"version": "2"}, nil, false, "2"},
		{"without that it is the API version", map[string]any{}, nil, false, "v1"},
		{"nothing is not a version", map[string]any{"version": ""}, nil, false, "v1"},
		{"nor is a number", map[string]any{"version": int64(2)}, nil, false, "v1"},
		{"the status says what was requested of a package that is missing", map[string]any{"version": "2"}, desired, true, "3"},
		{"while the package is there, the spec says it", map[string]any{"version": "2"}, desired, false, "2"},
		{"a status that says nothing decides nothing", map[string]any{"version": "2"}, nil, true, "2"},
	}
	for _, row := range rows {
		s := &subject{
			owner: ownership.Owner{Ref: cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}}},
			cr:    &unstructured.Unstructured{Object: map[string]any{"spec": row.spec}}, before: row.before,
		}
		if !row.missing {
			s.program = &program.Program{}
		}
		if got := s.version(); got != row.want {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
}
