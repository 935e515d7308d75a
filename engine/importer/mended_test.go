package importer_test

import (
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"operetta.dev/engine/importer"
)

// fileOf returns a file of a package.
func fileOf(t *testing.T, result importer.Result, name string) string {
	t.Helper()
	for _, f := range result.Files {
		if strings.HasSuffix(f.Path, "/"+name) {
			return string(f.Content)
		}
	}
	return ""
}

// TestHooksOfAChartAreImportedForInstallationsOnly has hooks at each time, with the file that they are in.
func TestHooksOfAChartAreImportedForInstallationsOnly(t *testing.T) {
	t.Parallel()
	for hooks, want := range map[string]string{
		"pre-install": "before.cue", "pre-install,pre-upgrade": "before.cue", "post-install": "afterwards.cue", "post-install, pre-upgrade": "afterwards.cue",
		"post-upgrade": "afterwards.cue", "pre-upgrade": "before.cue", "pre-delete": "", "post-delete": "", "test": "", "test-success": "", "pre-rollback,post-rollback": "",
		"post-install,pre-delete": "afterwards.cue",
	} {
		t.Run(hooks, func(t *testing.T) {
			t.Parallel()
			text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: job, annotations: {helm.sh/hook: \"" + hooks + "\"}}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}\n"
			result, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("shop")})
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"before.cue", "afterwards.cue"} {
				if in := strings.Contains(fileOf(t, result, file), `"Job"`); in != (file == want) {
					t.Errorf("in %s: %v, want it in %q", file, in, want)
				}
			}
			if left := strings.Contains(strings.Join(result.Notes, "\n"), "Job.batch job is left out"); left != (want == "") {
				t.Errorf("notes: %q", result.Notes)
			}
		})
	}
}

// TestReferencesToTheNamespaceFollowTheResource imports rights for an account, and a text that names the namespace.
func TestReferencesToTheNamespaceFollowTheResource(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: v1
kind: ServiceAccount
metadata: {name: shop, namespace: prod}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: shop, namespace: prod}, {kind: ServiceAccount, name: other, namespace: products}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shop, namespace: prod}
data: {url: "http://shop.prod.svc", other: production}
`
	result, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("shop")})
	if err != nil {
		t.Fatal(err)
	}
	access, notes := fileOf(t, result, "access.cue"), strings.Join(result.Notes, "\n")
	if strings.Count(access, "namespace: cr.metadata.namespace") != 1 || !strings.Contains(access, `"products"`) {
		t.Errorf("the subjects are\n%s", access)
	}
	if !strings.Contains(notes, "ConfigMap shop: data.url names the namespace prod") || strings.Contains(notes, "data.other") {
		t.Errorf("notes: %s", notes)
	}
}

// TestNamesThatCUEReadsOtherwiseAreQuoted imports a workload and a key whose names a reference begins with.
func TestNamesThatCUEReadsOtherwiseAreQuoted(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: apps/v1
kind: Deployment
metadata: {name: cr}
spec:
  replicas: 2
  selector: {matchLabels: {app: cr}}
  template: {metadata: {labels: {app: cr}}, spec: {containers: [{name: live, image: "a:1"}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shop-config}
data: {cr: shop-db, live: shop}
`
	result, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("shop"), Release: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	load(t, result.Files, "shop")
}

// TestAnAutoscalerBesideReplicasIsNoted imports what a chart renders that has both.
func TestAnAutoscalerBesideReplicasIsNoted(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/charts.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		if file.Name != "helmcreate.yaml" {
			continue
		}
		result, err := importer.Import(t.Context(), objectsIn(t, string(file.Data)), importer.Options{Package: packageOf("web")})
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, "remove the line with replicas from component web, so that the autoscaler decides") {
			t.Errorf("notes: %s", notes)
		}
	}
}
