package rights

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/test/harness"
)

// decoded decodes the only object of a kind and a name.
func decoded(t *testing.T, objects []*unstructured.Unstructured, kind, name string, into any) {
	t.Helper()
	for _, u := range objects {
		if u.GetKind() == kind && u.GetName() == name {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
}

// mount writes a volume of a ConfigMap into a folder as the kubelet does: the files are in a folder with a
// time in its name, and what is mounted are links.
func mount(t *testing.T, volume corev1.Volume, config corev1.ConfigMap, dir string) {
	t.Helper()
	const data = "..2026_11_23"
	items := volume.ConfigMap.Items
	if len(items) == 0 {
		for key := range config.Data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		file := filepath.Join(dir, data, item.Path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		text, ok := config.Data[item.Key]
		if !ok {
			t.Fatalf("ConfigMap %s has no key %s", config.Name, item.Key)
		}
		harness.WriteFile(t, file, text)
		top, _, _ := strings.Cut(item.Path, "/")
		if err := os.Symlink(filepath.Join("..data", top), filepath.Join(dir, top)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(data, filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// unpacked writes the volumes of a pod into a folder, and returns the arguments of its container for that
// folder.
func unpacked(t *testing.T, pod corev1.PodSpec, objects []*unstructured.Unstructured) []string {
	t.Helper()
	root := t.TempDir()
	for _, m := range pod.Containers[0].VolumeMounts {
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		dir := filepath.Join(root, m.MountPath)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if volume := pod.Volumes[at]; volume.ConfigMap != nil {
			var config corev1.ConfigMap
			decoded(t, objects, "ConfigMap", volume.ConfigMap.Name, &config)
			mount(t, volume, config, dir)
		}
	}
	var args []string
	for _, arg := range pod.Containers[0].Args[1:] {
		switch {
		case strings.HasPrefix(arg, "/packages/"):
			arg = root + arg
		case strings.HasPrefix(arg, "--overlay="):
			arg = "--overlay=" + root + strings.TrimPrefix(arg, "--overlay=")
		case strings.HasPrefix(arg, "--state-dir="):
			arg = "--state-dir=" + root + "/state"
		case strings.Contains(arg, "-bind-address="):
			name, _, _ := strings.Cut(arg, "=")
			arg = name + "=" + harness.AnyPort
		}
		args = append(args, arg)
	}
	return args
}

func TestF41WhatInstallPrintsRunsAnOperator(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	lockWebapps(t)
	home := s.Namespace + "-operator"
	account := home + "/operator"
	manifests := operetta(t, "install", harness.PackageDir("webapp"), filepath.Join(harness.Suite.Root, fixtures, "queue"),
		"--namespace", s.Namespace, "--service-account", account, "--leader-election-id", "shop")
	apply(t, manifests)
	apply(t, manifests) // a second time changes nothing and fails nowhere
	objects := objectsIn(t, manifests)
	var deployment appsv1.Deployment
	decoded(t, objects, "Deployment", "operator", &deployment)
	s.ExpectObject(harness.Object("apps/v1", "Deployment", home, "operator"), "to have two pods", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "readyReplicas") != int64(2) {
			return harness.ErrNotYet
		}
		return nil
	})

	// The nodes of the control plane run no containers, so the command of the Deployment runs here, with
	// its volumes, as its service account.
	args := unpacked(t, deployment.Spec.Template.Spec, objects)
	s.ActAsAccount(account)
	from := harness.MarkAudit(t)
	o := s.StartOperator(append(args, "--leader-elect-namespace", home)...)
	o.ExpectLog("acquired lease", "shop")
	cr := s.Create(s.Webapp("web", map[string]any{"image": "nginx:1.25"}))
	s.ExpectResourceReady(cr)
	s.Delete(cr)
	s.ExpectGone(cr)
	for _, e := range s.RequestsOf(from, s.User) {
		// Resources whose package is missing are looked for where the operator may list them; others are not its own.
		if e.Code == 403 && e.Verb != "list" {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
}
