package ownership_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

func TestOnlyASaltOfTheEngineCounts(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("a1", len(program.FixedSalt)/2)
	for name, row := range map[string]struct {
		reason, salt, manager, want string
	}{
		"the engine's":           {"it was applied", good, "operetta", good},
		"somebody else's":        {"who wrote it knows it", good, "somebody", ""},
		"one that is too short":  {"it could be guessed", good[:4], "operetta", ""},
		"one that is no number":  {"the engine writes none", strings.Repeat("zz", len(good)/2), "operetta", ""},
		"one that is empty":      {"there is none", "", "operetta", ""},
		"one that is too long":   {"the engine writes none", good + good, "operetta", ""},
		"one that is not in hex": {"the engine writes none", strings.Repeat("-", len(good)), "operetta", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := fromYAML(t, `{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {`+ownership.SaltAnnotation+`: "`+row.salt+`"}, managedFields: [
{manager: `+row.manager+`, operation: Apply, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:metadata: {f:annotations: {"f:`+ownership.SaltAnnotation+`": {}}}}}]}}`)
			if got := ownership.SaltOf(live); got != row.want {
				t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
			}
		})
	}
	if got := ownership.SaltOf(nil); got != "" {
		t.Errorf("what is not there has the salt %q", got)
	}
}

func TestWhatWasStrippedIsMarkedAgain(t *testing.T) {
	t.Parallel()
	want := stamp(t, rendered(program.Policy{}))
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "shop", "annotations": map[string]any{"theirs": "1"}},
		"data":     map[string]any{"theirs": "1"},
	}}
	ownership.CopyMarks(live, want)
	if live.GetLabels()[ownership.OwnerLabel] != owner.Label() {
		t.Errorf("its labels are %v", live.GetLabels())
	}
	for _, mark := range []string{ownership.OwnerAnnotation, ownership.OwnerUIDAnnotation, ownership.ComponentAnnotation} {
		if got, want := live.GetAnnotations()[mark], want.Manifest.GetAnnotations()[mark]; got != want || want == "" {
			t.Errorf("%s is %q, want %q", mark, got, want)
		}
	}
	if live.GetAnnotations()["theirs"] != "1" || live.Object["data"].(map[string]any)["size"] != nil {
		t.Errorf("the rest of it has changed: %v", live.Object)
	}
}
