package program_test

import (
	"testing"

	"operetta.dev/engine/program"
)

// The digest of what an object holds rests on more than the package refers to.
func TestADigestThatChangesIsSeenByTheMemo(t *testing.T) {
	t.Parallel()
	m := program.NewMemo(compile(t, `
inputs: it: {apiVersion: "v1", kind: "Secret", name: "it"}
components: web: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c", data: of: inputs.it.object.metadata.annotations["operetta.dev/digest"]}
`), 10)
	digest := func(secret string) any {
		t.Helper()
		s := session(t, `{}`, `{}`)
		s.CR["metadata"].(map[string]any)["uid"] = "1"
		s.Inputs = map[string]program.Found{"it": {Objects: []map[string]any{{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "it", "namespace": "town", "uid": "u"}, "data": map[string]any{"key": secret},
		}}}}
		r, err := m.Evaluate(s)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := r.Components[0].Objects[0].Manifest["data"].(map[string]any)
		return data["of"]
	}
	first := digest("YQ==")
	if first == nil || first == "" {
		t.Fatal("there is no digest")
	}
	if second := digest("Yg=="); second == first {
		t.Errorf("another content has the same digest %v", first)
	}
	if again := digest("YQ=="); again != first {
		t.Errorf("the same content has the digests %v and %v", first, again)
	}
}
