package patch_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/object"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"sigs.k8s.io/yaml"
)

// FuzzPatch tries changes on manifests: whatever they are, nothing panics, the object is
// the same one, and it has no right that it did not have.
func FuzzPatch(f *testing.F) {
	manifests := []string{deployment, secret, gadget, confined, bare, cronjob, pod, unknown, service, binding}
	changes := []string{
		`strategicMerge: {spec: {template: {spec: {hostPID: true, volumes: [{name: r, hostPath: {path: /}}]}}}}`,
		`strategicMerge: {spec: {template: {spec: {$patch: replace, serviceAccountName: admin, containers: [{name: web, $patch: delete}]}}}}`,
		`strategicMerge: {metadata: {name: other, labels: {operetta.dev/owner: x}, finalizers: [evil/x]}}`,
		`json6902: [{op: test, path: ""}]`,
		`json6902: [{op: move, from: /spec/template, path: /spec/other}, {op: copy, from: /metadata, path: /spec/x}]`,
		`json6902: [{op: add, path: /spec/containers/-, value: {name: evil, securityContext: {privileged: true}}}]`,
		`json6902: [{op: replace, path: /spec, value: {hostNetwork: true}}, {op: remove, path: /metadata/name}]`,
		`json6902: [{op: add, path: /spec/a~1b, value: null}]`,
	}
	for _, manifest := range manifests {
		for _, change := range changes {
			asJSON, err := yaml.YAMLToJSON([]byte(manifest))
			if err != nil {
				f.Fatal(err)
			}
			var both map[string]any
			if err := yaml.Unmarshal([]byte("{address: web.it, "+change+"}"), &both); err != nil {
				f.Fatal(err)
			}
			text, _ := json.Marshal(both)
			f.Add(string(asJSON), string(text))
		}
	}
	f.Fuzz(func(t *testing.T, manifest, change string) {
		var before map[string]any
		var made any
		if utiljson.Unmarshal([]byte(manifest), &before) != nil || before == nil || utiljson.Unmarshal([]byte(change), &made) != nil {
			return
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"patches": []any{made}}}}
		asRead := &unstructured.Unstructured{Object: before}
		o := program.Object{Name: "it", Manifest: before, Identity: object.Ref{GroupVersionKind: asRead.GroupVersionKind(), Name: asRead.GetName()}}
		components := []program.Component{{Name: "web", When: program.WhenResult{Verdict: program.True}, Objects: []program.Object{o}}}
		after, _ := patch.Apply(components, []patch.Patch{patch.Parse(u)}, nil)
		judge(t, before, after[0].Objects[0].Manifest)
	})
}

// judge compares what a manifest was with what patches have made of it, by means of its own.
func judge(t *testing.T, before, after map[string]any) {
	t.Helper()
	identity := func(m map[string]any) []any {
		u := unstructured.Unstructured{Object: m}
		metadata, _ := m["metadata"].(map[string]any)
		return []any{m["apiVersion"], m["kind"], u.GetName(), u.GetNamespace(), metadata["ownerReferences"], metadata["finalizers"]}
	}
	if diff := cmp.Diff(identity(normalJSON(t, before)), identity(normalJSON(t, after))); diff != "" {
		t.Errorf("it is another object (-was +is):\n%s", diff)
	}
	if before["kind"] == "ConfigMap" {
		return // its keys may be any words
	}
	had := map[string]bool{}
	rightsIn(normalJSON(t, before), had)
	has := map[string]bool{}
	rightsIn(normalJSON(t, after), has)
	for right := range has {
		if !had[right] {
			t.Errorf("it has got %s", right)
		}
	}
}

func normalJSON(t *testing.T, m map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// rightsIn collects the fields with rights and their values, wherever they are.
func rightsIn(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			switch name {
			case "hostPath", "hostNetwork", "hostPID", "hostIPC", "hostPort", "privileged", "serviceAccountName", "secretRef", "secretKeyRef",
				"serviceAccountToken", "allowPrivilegeEscalation", "imagePullSecrets", "operetta.dev/owner", "operetta.dev/adopt":
				if text, _ := json.Marshal(inner); inner != nil {
					into[name+" "+string(text)] = true
				}
			case "labels", "annotations", "matchLabels", "nodeSelector":
				words, _ := inner.(map[string]any)
				for key := range words {
					if key == "operetta.dev/owner" || key == "operetta.dev/adopt" {
						rightsIn(map[string]any{key: words[key]}, into)
					}
				}
			default:
				rightsIn(inner, into)
			}
		}
	case []any:
		for _, item := range v {
			rightsIn(item, into)
		}
	}
}
