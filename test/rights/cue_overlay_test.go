package rights

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"operetta.dev/test/harness"
)

// A kustomization that docs/overlays.md shows adds an overlay of CUE to what operetta install prints. The operator takes a change of it
// without a restart.
func TestAnOverlayOfCUEBesideAKustomizeBaseHoldsForItsPackages(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	home := s.Namespace + "-operator"
	p := harness.NewTestPackage(t, "kustomized", limitedBody)
	s.Create(harness.Object("v1", "Secret", s.Namespace, "token"))
	base := map[string]string{
		"operetta.yaml":      string(operetta(t, "install", p.Dir, "--namespace", s.Namespace, "--service-account", home+"/operator", "--crds", "apply")),
		"kustomization.yaml": "resources: [operetta.yaml]\n",
	}
	labels := func(team string) string {
		return "package team\n\ncomponents: [string]: objects: [string]: metadata: labels: team: \"" + team + "\"\n"
	}
	built := kustomized(t, base, map[string]string{
		"kustomization.yaml": strings.NewReplacer("namespace: operetta-system", "namespace: "+home, "name: operetta}", "name: operator}").Replace(kustomizationOf(t, "overlays.md")),
		"labels.cue":         labels("search"),
	})
	apply(t, built)
	objects := objectsIn(t, built)
	var deployment appsv1.Deployment
	decoded(t, objects, "Deployment", "operator", &deployment)
	args, folder := unpacked(t, deployment.Spec.Template.Spec, objects), ""
	for _, arg := range args {
		if dir, is := strings.CutPrefix(arg, "--overlay="); is {
			folder = dir
		}
	}
	s.ActAsAccount(home + "/operator")
	s.StartOperator(append(args, "--leader-elect-namespace", home)...)
	cr := s.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)
	expectTeam(s, "search")

	remount(t, folder, "labels.cue", labels("ads"))
	expectTeam(s, "ads")
	s.ExpectResourceReady(cr)
	s.Delete(cr)
	s.ExpectGone(cr)
}

// remount changes a file in a folder where a ConfigMap is mounted as the kubelet does: it replaces the link to the data.
func remount(t *testing.T, dir, name, text string) {
	t.Helper()
	const next = "..2026_11_24"
	if err := os.Mkdir(filepath.Join(dir, next), 0o700); err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(dir, next, name), text)
	if err := os.Symlink(next, filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// expectTeam waits until the objects of the package have the label of the overlay.
func expectTeam(s *harness.Env, want string) {
	s.T.Helper()
	harness.Eventually(s.T, "the label of the overlay to be "+want, func() error {
		for kind, name := range map[string]string{"ConfigMap": "settings-shop", "Service": "web-shop"} {
			u, err := s.Lookup(kind, name)
			if err != nil || u == nil || u.GetLabels()["team"] != want {
				return harness.ErrNotYet
			}
		}
		return nil
	})
}

// kustomizationOf returns the kustomization that a page of the documents shows.
func kustomizationOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Suite.Root, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\nresources:")
	block, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatalf("%s shows no kustomization", page)
	}
	return "resources:" + block
}
