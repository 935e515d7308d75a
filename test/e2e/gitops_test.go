package e2e

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/harness"
	"sigs.k8s.io/yaml"
)

const copiedBody = `
#Spec: size: int | *1

components: {
	web: objects: c: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: {
			name:        "copied"
			labels:      cr.metadata.labels
			annotations: cr.metadata.annotations
		}
		data: size: "\(cr.spec.size)"
	}
	list: objects: c: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "keys"
		data: {for k, v in cr.metadata.labels {"label-\(len(k))": v}}
	}
}
`

// A tool would prune an object with its mark that is not in its repository, and the operator would create it again.
func TestMarksOfArgoCDAndFluxDoNotReachObjectsOfAPackageThatCopiesMetadata(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "copied", copiedBody)
	s.StartOperator(p.Dir)
	cr := p.Thing(s.Env, "shop", map[string]any{"size": int64(3)})
	cr.SetLabels(map[string]string{"team": "blue", "app.kubernetes.io/instance": "shop", "kustomize.toolkit.fluxcd.io/name": "apps"})
	cr.SetAnnotations(map[string]string{"note": "kept", "argocd.argoproj.io/tracking-id": "shop:copied.example.com/Thing:x/shop"})
	text, err := yaml.Marshal(cr.Object)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	harness.WriteFile(t, file, string(text))
	s.Kubectl("apply", "-f", file) // it adds last-applied-configuration
	s.ExpectResourceReady(cr)
	if s.ExpectObject(cr, "to exist", harness.Exists).GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"] == "" {
		t.Fatal("kubectl has not added its annotation, so nothing is tested")
	}
	child := s.ExpectData("copied", "size", "3")
	marks := map[string]string{}
	for _, all := range []map[string]string{child.GetLabels(), child.GetAnnotations()} {
		for k, v := range all {
			if k == "team" || k == "note" || k == "app.kubernetes.io/instance" || k == "kustomize.toolkit.fluxcd.io/name" ||
				k == "argocd.argoproj.io/tracking-id" || k == "kubectl.kubernetes.io/last-applied-configuration" {
				marks[k] = v
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"team": "blue", "note": "kept"}, marks); diff != "" {
		t.Errorf("what came from the resource (-want +got):\n%s", diff)
	}
	keys := s.ExpectObject(s.Ref("ConfigMap", "keys"), "to exist", harness.Exists)
	if diff := cmp.Diff(map[string]any{"label-4": "blue"}, keys.Object["data"]); diff != "" {
		t.Errorf("what a package can see of the labels (-want +got):\n%s", diff)
	}
}
