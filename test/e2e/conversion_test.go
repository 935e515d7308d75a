package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// copyOfWebApp writes package webapp for a group of its own, so that no other test has another definition of its kind, and
// returns its folder. The edit changes the file with version v1alpha1.
// Its name has to come after example.com: of several groups with webapps, kubectl means the first.
func copyOfWebApp(t *testing.T, group string, edit func(string) string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cue", "webapp")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(harness.Suite.Root, "cue/webapp"))); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(string) string{
		"webapp.cue":   func(text string) string { return strings.Replace(text, `"example.com"`, fmt.Sprintf("%q", group), 1) },
		"v1alpha1.cue": edit,
	} {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// asItIs changes nothing.
func asItIs(text string) string { return text }

// startConverting starts an operator of a package that converts its versions, and waits until the API server trusts it.
func startConverting(t *testing.T, s *env, dir, definition string, flags ...string) *harness.Webhooks {
	t.Helper()
	w := s.NewWebhooks(dir)
	s.StartOperator(append(append([]string{dir}, w.Flags()...), flags...)...)
	harness.Eventually(t, "a definition that converts", func() error {
		got, err := installedDefinition(t, definition)
		if err != nil {
			return err
		}
		if c := got.Spec.Conversion; c == nil || c.Webhook == nil || len(c.Webhook.ClientConfig.CABundle) == 0 {
			return errors.New("it trusts nobody yet")
		}
		return nil
	})
	return w
}

// webApp returns a WebApp of a version.
func webApp(s *env, group, version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version, "kind": "WebApp",
		"metadata": map[string]any{"name": name, "namespace": s.Namespace, "labels": map[string]any{"team": "a"}}, "spec": spec,
	}}
}

func TestF30K47AWebAppIsReadAndWrittenInBothVersions(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	const group = "versions.example.com"
	startConverting(t, s, copyOfWebApp(t, group, asItIs), "webapps."+group)
	kubectl := func(arguments ...string) string {
		t.Helper()
		out, err := harness.Kubectl(t.Context(), append(arguments, "-n", s.Namespace)...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}

	harness.Eventually(t, "the first resource of version v1alpha1", func() error {
		// The API server takes a moment to use a changed definition.
		return client.IgnoreAlreadyExists(harness.Suite.Admin.Create(t.Context(), webApp(s, group, "v1alpha1", "old", map[string]any{
			"image": "nginx:1.25", "servers": map[string]any{"count": int64(2), "cpu": "50m"}, "content": map[string]any{"env": map[string]any{"A": "b"}},
		})))
	})
	created := webApp(s, group, "v1", "old", nil)
	s.ExpectObject(created, "to be rolled out", func(u *unstructured.Unstructured) error {
		if got := harness.Field(u, "spec", "replicas"); got != int64(2) {
			return fmt.Errorf("spec.replicas is %v", got)
		}
		if got := harness.Field(u, "status", "phase"); got == nil {
			return harness.ErrNotYet
		}
		return nil
	})
	for _, tc := range []struct{ reason, kind, path, want string }{
		{"what was written", "webapps.v1alpha1." + group, "{.apiVersion} {.spec.servers.count} {.spec.servers.cpu} {.spec.content.env.A}", group + "/v1alpha1 2 50m b"},
		{"its defaults", "webapps.v1alpha1." + group, "{.spec.host} {.spec.servers.most}", "webapp.example.com 10"},
		{"the same in the storage version", "webapps.v1." + group, "{.apiVersion} {.spec.replicas} {.spec.resources.cpu} {.spec.env.A}", group + "/v1 2 50m b"},
		{"metadata is kept", "webapps.v1alpha1." + group, "{.metadata.labels.team}", "a"},
		{"and so is the status", "webapps.v1alpha1." + group, "{.status.observedGeneration}", "1"},
	} {
		if got := kubectl("get", tc.kind, "old", "-o", "jsonpath="+tc.path); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
	// A change of a field of the old version reaches the objects, and takes nothing else with it.
	kubectl("patch", "webapps.v1alpha1."+group, "old", "--type=merge", "-p", `{"spec":{"servers":{"count":3}}}`)
	harness.Eventually(t, "three replicas", func() error {
		u, err := s.Lookup("Deployment", "old")
		if err != nil || u == nil {
			return errors.Join(err, harness.ErrNotYet)
		}
		if got := harness.Field(u, "spec", "replicas"); got != int64(3) {
			return fmt.Errorf("spec.replicas is %v", got)
		}
		return nil
	})
	if diff := cmp.Diff("50m b", kubectl("get", "webapps.v1."+group, "old", "-o", "jsonpath={.spec.resources.cpu} {.spec.env.A}")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := harness.Kubectl(t.Context(), "patch", "webapps.v1alpha1."+group, "old", "-n", s.Namespace, "--type=merge", "-p", `{"spec":{"servers":{"least":20}}}`); err == nil || !strings.Contains(err.Error(), "least cannot be more than most") {
		t.Errorf("a rule of the old version does not hold: %v", err)
	}
}

// installedDefinition returns a CustomResourceDefinition.
func installedDefinition(t *testing.T, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := harness.Suite.Admin.Get(t.Context(), client.ObjectKey{Name: name}, u); err != nil {
		return nil, err
	}
	out := &apiextensionsv1.CustomResourceDefinition{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
}

func TestAnOperatorWithoutWebhooksServesTheStorageVersionAlone(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	const group = "lone.example.com"
	dir := copyOfWebApp(t, group, asItIs)
	startConverting(t, s, dir, "webapps."+group)
	s.Operator.Stop()
	s.StartOperator(dir)
	harness.Eventually(t, "a definition that does not convert", func() error {
		definition, err := installedDefinition(t, "webapps."+group)
		if err != nil {
			return err
		}
		for _, v := range definition.Spec.Versions {
			if v.Served != v.Storage {
				return fmt.Errorf("version %s: served %t, stored %t", v.Name, v.Served, v.Storage)
			}
		}
		if c := definition.Spec.Conversion; c != nil && c.Strategy != apiextensionsv1.NoneConverter {
			return fmt.Errorf("the strategy is %s", c.Strategy)
		}
		return nil
	})
	s.Operator.ExpectLog("versions are not served")
	cr := s.Create(webApp(s, group, "v1", "new", map[string]any{"image": "nginx:1.25"}))
	s.ExpectObject(cr, "to be reconciled", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "observedGeneration") != int64(1) {
			return harness.ErrNotYet
		}
		return nil
	})
}

func TestNoConversionIsLostWhenCertificatesAreReplaced(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	const group = "rotated.example.com"
	startConverting(t, s, copyOfWebApp(t, group, asItIs), "webapps."+group, "--webhook-cert-lifetime", "30s")
	old := webApp(s, group, "v1alpha1", "old", map[string]any{"image": "nginx:1.25"})
	harness.Eventually(t, "the first resource", func() error {
		return client.IgnoreAlreadyExists(harness.Suite.Admin.Create(t.Context(), old.DeepCopy()))
	})
	served := func() int { return strings.Count(s.Operator.Log.From(0), "with a new certificate") }
	first, asked := served(), 0
	harness.Eventually(t, "two more certificates", func() error {
		asked++
		changed := webApp(s, group, "v1alpha1", "old", map[string]any{"image": fmt.Sprintf("nginx:1.%d", asked)})
		// A patch of the old version is converted there and back.
		if err := harness.Suite.Admin.Patch(t.Context(), changed, client.Merge); err != nil {
			t.Errorf("a conversion is lost: %v", err)
		}
		if n := served() - first; n < 2 {
			return fmt.Errorf("%d more were served, after %d conversions", n, asked)
		}
		return nil
	})
	t.Logf("%d changes over %d certificates", asked, served())
}

func TestNobodyStoresWhatAnotherVersionCannotExpress(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	const group = "narrow.example.com"
	dir := copyOfWebApp(t, group, func(text string) string {
		return strings.Replace(text, "strings.MaxRunes(512)", "strings.MaxRunes(20)", 1)
	})
	w := startConverting(t, s, dir, "webapps."+group)
	long := map[string]any{"image": "registry.example.com/nginx:1.25"}
	w.Await(webApp(s, group, "v1", "early", long))

	mustBeRefused(t, harness.Suite.Admin.Create(t.Context(), webApp(s, group, "v1", "long", long)), "spec.image", "version v1alpha1 of it could not be read")
	short := webApp(s, group, "v1", "short", map[string]any{"image": "nginx:1.25"})
	if err := harness.Suite.Admin.Create(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	mustBeRefused(t, harness.Suite.Admin.Patch(t.Context(), short, client.RawPatch(types.MergePatchType, harness.Encode(t, harness.Spec(long)))), "spec.image", "version v1alpha1 of it could not be read")
	out, err := harness.Kubectl(t.Context(), "get", "webapps.v1alpha1."+group, "-n", s.Namespace, "-o", "name")
	if err != nil || !strings.Contains(out, "/short") {
		t.Errorf("the list of the other version is %q, %v", out, err)
	}
}

func TestAConversionThatHangsStopsNobodyElse(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	const group = "hanging.example.com"
	dir := copyOfWebApp(t, group, func(text string) string {
		text = strings.Replace(text, "import (\n", "import (\n\t\"text/template\"\n", 1)
		return strings.Replace(text, "image:          given.image", `image: template.Execute(given.image, {})`, 1)
	})
	startConverting(t, s, dir, "webapps."+group, "--evaluation-time", "500ms")
	create := func(name, image string) error {
		return harness.Suite.Admin.Create(t.Context(), webApp(s, group, "v1alpha1", name, map[string]any{"image": image}))
	}
	harness.Eventually(t, "the first resource", func() error { return client.IgnoreAlreadyExists(create("calm", "nginx:1.25")) })
	const endless = "{{range $i := 9223372036854775807}}{{end}}"
	harness.Eventually(t, "a refusal that names the resource", func() error {
		err := create("hangs", endless)
		if err == nil {
			t.Fatal("it is stored")
		}
		if !strings.Contains(err.Error(), s.Namespace+"/hangs") || !strings.Contains(err.Error(), "took more than the limit") {
			return err
		}
		return nil
	})
	for i := range 3 {
		if err := create(fmt.Sprintf("after-%d", i), "nginx:1.25"); err != nil {
			t.Error(err)
		}
	}
	s.ExpectObject(webApp(s, group, "v1", "after-2", nil), "to be reconciled", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "observedGeneration") != int64(1) {
			return harness.ErrNotYet
		}
		return nil
	})
}
