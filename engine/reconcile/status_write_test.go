package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
)

func TestTheEnginesStatusIsWhatItHasAppliedToTheStatus(t *testing.T) {
	t.Parallel()
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	field := func(name string) *metav1.FieldsV1 { return metav1.NewFieldsV1(`{"f:status": {"f:` + name + `": {}}}`) }
	whole := map[string]any{"url": "ours", "auditor": "theirs"}
	for name, row := range map[string]struct {
		reason string
		entry  metav1.ManagedFieldsEntry
		want   map[string]any
	}{
		"applied":             {"it is the engine's", metav1.ManagedFieldsEntry{Manager: cluster.FieldManager, Operation: apply, Subresource: "status", FieldsV1: field("url")}, map[string]any{"url": "ours"}},
		"another manager":     {"it applies fields of its own", metav1.ManagedFieldsEntry{Manager: "auditor", Operation: apply, Subresource: "status", FieldsV1: field("auditor")}, whole},
		"an update":           {"a backup of the engine's status is restored with that", metav1.ManagedFieldsEntry{Manager: cluster.FieldManager, Operation: update, Subresource: "status", FieldsV1: field("auditor")}, whole},
		"another subresource": {"the finalizer is applied to the resource", metav1.ManagedFieldsEntry{Manager: cluster.FieldManager, Operation: apply, FieldsV1: field("auditor")}, whole},
		"no fields":           {"nothing is known", metav1.ManagedFieldsEntry{Manager: cluster.FieldManager, Operation: apply, Subresource: "status"}, whole},
		"unreadable fields":   {"nothing is known", metav1.ManagedFieldsEntry{Manager: cluster.FieldManager, Operation: apply, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`[]`)}, whole},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cr := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"url": "ours", "auditor": "theirs"}}}
			cr.SetManagedFields([]metav1.ManagedFieldsEntry{row.entry})
			if cr.GetManagedFields()[0].FieldsV1 == nil && row.entry.FieldsV1 != nil {
				t.Fatal("the fields are lost")
			}
			if diff := cmp.Diff(row.want, ownStatus(cr)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			ownership.CompactManagedFields(cr) // as a cache has it
			if diff := cmp.Diff(row.want, ownStatus(cr)); diff != "" {
				t.Errorf("from a cache: %s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
