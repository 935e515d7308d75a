package ownership

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func entryWith(text string) metav1.ManagedFieldsEntry {
	m := metav1.ManagedFieldsEntry{Manager: "operetta", FieldsV1: &metav1.FieldsV1{}}
	m.FieldsV1.SetRawString(text)
	return m
}

func TestFieldsAreReadOnceForAllObjectsThatHaveThem(t *testing.T) {
	text := `{"f:spec":{"f:once":{}}}`
	first := FieldSet(entryWith(text))
	if first == nil || FieldSet(entryWith(strings.Clone(text))) != first {
		t.Error("the same text was read twice")
	}
	if FieldSet(entryWith(`{"f:spec":{"f:other":{}}}`)).Equals(first) {
		t.Error("another text has the same fields")
	}
	for range 2 {
		if FieldSet(entryWith(`{"f:spec":`)) != nil {
			t.Error("a text that cannot be read has fields")
		}
	}
	long := `{"f:` + strings.Repeat("x", longestFieldSet) + `":{}}`
	if once := FieldSet(entryWith(long)); once == nil || once == FieldSet(entryWith(long)) {
		t.Error("a long text is kept")
	}
}

func TestManyTextsOfFieldsDoNotPileUp(t *testing.T) {
	for i := range 2 * rememberedFieldSets {
		FieldSet(entryWith(fmt.Sprintf(`{"f:n%d":{}}`, i)))
	}
	if n := fieldSets.Len(); n > rememberedFieldSets {
		t.Errorf("%d texts are kept, and %d are the limit", n, rememberedFieldSets)
	}
}

// What is known to be in sync is asked for several times in a reconcile, for each object.
func BenchmarkAnObjectIsInSync(b *testing.B) {
	text := `{"f:metadata":{"f:annotations":{"f:operetta.dev/digest":{}}},"f:spec":{` + strings.Repeat(`"f:x":{},`, 100) + `"f:y":{}}}`
	live := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": []any{
		map[string]any{"manager": "operetta", "operation": "Apply", "fieldsV1": text},
	}}}}
	b.ReportAllocs()
	for b.Loop() {
		syncKeyOf(Desired{Digest: "0123456789abcdef"}, live)
	}
}
