package program_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
)

const copying = `
components: web: objects: c: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: {
		name: "c"
		labels: {for k, v in cr.metadata.labels {(k): v}}
		annotations: cr.metadata.annotations
	}
}
`

// metadataOfObject returns the metadata that the package renders for labels and annotations of its resource.
func metadataOfObject(t *testing.T, p *program.Program, s program.Session) map[string]any {
	t.Helper()
	m, _ := evaluate(t, p, s).Components[0].Objects[0].Manifest["metadata"].(map[string]any)
	return m
}

func TestMarksOfWhoAppliesTheResourceReachNoObject(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason              string
		labels, annotations []string
	}{
		"Argo CD": {
			"it prunes what has its mark and is not in its repository",
			[]string{"app.kubernetes.io/instance", "argocd.argoproj.io/instance"},
			[]string{"argocd.argoproj.io/tracking-id", "argocd.argoproj.io/installation-id", "argocd.argoproj.io/sync-wave", "argocd.argoproj.io/hook"},
		},
		"Flux": {
			"its labels name a Kustomization or a HelmRelease, and its annotations are requests to it",
			[]string{"kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace", "helm.toolkit.fluxcd.io/name"},
			[]string{"kustomize.toolkit.fluxcd.io/prune", "kustomize.toolkit.fluxcd.io/ssa", "reconcile.fluxcd.io/requestedAt"},
		},
		"Helm":       {"a release adopts what names it", nil, []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "helm.sh/hook", "helm.sh/resource-policy"}},
		"kubectl":    {"the next apply would take the fields of the resource from the object", []string{"applyset.kubernetes.io/part-of"}, []string{"kubectl.kubernetes.io/last-applied-configuration"}},
		"cli-utils":  {"an inventory prunes what names it", nil, []string{"config.k8s.io/owning-inventory"}},
		"Carvel":     {"kapp deletes what has its labels", []string{"kapp.k14s.io/app", "kapp.k14s.io/association"}, []string{"kapp.k14s.io/identity"}},
		"it is many": {"all of them at once", []string{"app.kubernetes.io/instance", "kapp.k14s.io/app"}, []string{"argocd.argoproj.io/tracking-id"}},
	}
	p := compile(t, copying)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := map[string]any{"team": "blue", "app.kubernetes.io/part-of": "shop", "example.com/argocd.argoproj.io": "x", "notargocd.argoproj.io": "y"}
			labels, annotations := map[string]any{}, map[string]any{}
			for k, v := range kept {
				labels[k], annotations[k] = v, v
			}
			for _, k := range row.labels {
				labels[k] = "mark"
			}
			for _, k := range row.annotations {
				annotations[k] = "mark"
			}
			s := session(t, `{}`, `{}`)
			meta := s.CR["metadata"].(map[string]any)
			meta["labels"], meta["annotations"] = labels, annotations
			got := metadataOfObject(t, p, s)
			want := map[string]any{"name": "c", "labels": kept, "annotations": kept}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if len(labels) != len(kept)+len(row.labels) || len(annotations) != len(kept)+len(row.annotations) {
				t.Error("the session was changed")
			}
			reduced, err := p.Views().Reduced(s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, metadataOfObject(t, p, reduced)); diff != "" {
				t.Errorf("in a worker (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMarkThatComesOrGoesCostsNoEvaluation(t *testing.T) {
	t.Parallel()
	p := compile(t, copying)
	version := func(annotations map[string]any) string {
		s := session(t, `{}`, `{}`)
		meta := s.CR["metadata"].(map[string]any)
		meta["labels"], meta["annotations"] = map[string]any{"team": "blue"}, annotations
		return p.Version(s)
	}
	plain := version(map[string]any{"a": "b"})
	if version(map[string]any{"a": "b", "argocd.argoproj.io/refresh": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"}) != plain {
		t.Error("the package sees a mark")
	}
	if version(map[string]any{"a": "c"}) == plain {
		t.Error("the package does not see an annotation that is no mark")
	}
}

func TestAPackageMayWriteSuchAMarkItself(t *testing.T) {
	t.Parallel()
	p := compile(t, `
components: web: objects: c: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: {name: "c", labels: "app.kubernetes.io/instance": cr.metadata.name, annotations: "argocd.argoproj.io/sync-options": "Prune=false"}
}
`)
	got := metadataOfObject(t, p, session(t, `{}`, `{}`))
	want := map[string]any{
		"name":        "c",
		"labels":      map[string]any{"app.kubernetes.io/instance": "corner"},
		"annotations": map[string]any{"argocd.argoproj.io/sync-options": "Prune=false"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLabelsThatAreNoMapAreLeftToTheSchema(t *testing.T) {
	t.Parallel()
	p := compile(t, `components: web: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c"}`)
	s := session(t, `{}`, `{}`)
	s.CR["metadata"].(map[string]any)["labels"] = "argocd.argoproj.io/instance"
	evaluate(t, p, s)
}
