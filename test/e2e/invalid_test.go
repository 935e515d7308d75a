package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

func TestInvalidSpecIsRefusedByTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	for name, row := range map[string]struct {
		spec map[string]any
		says []string
	}{
		"above a bound":   {map[string]any{"image": "a:1", "replicas": int64(101)}, []string{"spec.replicas", "100"}},
		"below a bound":   {map[string]any{"image": "a:1", "port": int64(0)}, []string{"spec.port", "1"}},
		"a missing field": {map[string]any{"replicas": int64(1)}, []string{"spec.image", "equired"}},
		"another type":    {map[string]any{"image": int64(7)}, []string{"spec.image", "string"}},
		"a wrong pattern": {map[string]any{"image": "a:1", "resources": map[string]any{"cpu": "much"}}, []string{"spec.resources.cpu"}},
		"an empty string": {map[string]any{"image": ""}, []string{"spec.image"}},
	} {
		err := harness.Suite.Admin.Create(t.Context(), s.Webapp("shop", row.spec))
		if !apierrors.IsInvalid(err) || !harness.ContainsAll(err.Error(), row.says) {
			t.Errorf("%s: the answer is %v, wanted a refusal with %q", name, err, row.says)
			continue
		}
		t.Logf("%s: %v", name, err)
	}
}

func TestF5InvalidSpecThatGotThroughIsReportedAndTouchesNothing(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := copyPackage(t, "webapp", map[string]string{`group: "example.com"`: `group: "loose.example.com"`})
	s.installPermissiveCRD(p.dir)
	s.StartOperator(p.dir, "--crds", "leave")
	cr := harness.Object("loose.example.com/v1", "WebApp", s.Namespace, "shop")
	cr.Object["spec"] = map[string]any{"image": "nginx:1.25", "replicas": int64(2)}
	s.Create(cr)
	s.ExpectResourceReady(cr)
	s.WaitUntilIdle()
	for name, row := range map[string]struct {
		patch map[string]any
		says  []string
	}{
		"above a bound": {map[string]any{"replicas": int64(1000)}, []string{"spec.replicas", "<=100"}},
		"another type":  {map[string]any{"image": int64(7), "replicas": int64(2)}, []string{"spec.image", "string"}},
		"unknown field": {map[string]any{"image": "nginx:1.25", "imagee": "nginx:1.26"}, []string{"spec.imagee"}},
		// A negative number of replicas is not tried, because the API server rejects it by the scale
		// subresource, however permissive the schema is.
		"several": {map[string]any{"imagee": nil, "replicas": int64(500), "port": int64(0)}, []string{"spec.replicas", "spec.port"}},
	} {
		before := s.versions()
		s.Patch(cr, harness.Spec(row.patch))
		message := s.ExpectNotReady(cr, "InvalidSpec", row.says...)
		t.Logf("%s: %s", name, message)
		if stalled := harness.Condition(s.ExpectObject(cr, "to exist", harness.Exists), "Stalled"); stalled["status"] != "True" {
			t.Errorf("%s: Stalled is %v", name, stalled)
		}
		if after := s.versions(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: objects changed: %v, were %v", name, after, before)
		}
		s.Patch(cr, harness.Spec(map[string]any{"image": "nginx:1.25", "replicas": int64(2), "imagee": nil, "port": nil}))
		s.ExpectResourceReady(cr)
	}
}

// installPermissiveCRD installs the CRD of a package with a schema that accepts any spec, as an older
// version of the package might have.
func (s *env) installPermissiveCRD(dir string) {
	s.T.Helper()
	if err := harness.InstallCRDs(s.T.Context(), dir); err != nil {
		s.T.Fatal(err)
	}
	crd := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "webapps.loose.example.com")
	s.JSONPatch(crd, map[string]any{
		"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
		"value": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
	})
	// The API server takes a moment to use a changed definition.
	probe := harness.Object("loose.example.com/v1", "WebApp", s.Namespace, "probe")
	probe.Object["spec"] = map[string]any{"anything": "goes"}
	harness.Eventually(s.T, "the looser schema", func() error {
		u := probe.DeepCopy()
		if err := harness.Suite.Admin.Create(s.T.Context(), u); err != nil {
			return err
		}
		defer s.Delete(u)
		if _, kept, _ := unstructured.NestedString(u.Object, "spec", "anything"); !kept {
			return harness.ErrNotYet
		}
		return nil
	})
}

// hostile are strings that must be passed on unchanged.
var hostile = []string{
	`quote " and \(cr.metadata.name) and \n`, "line\nbreak", `"""`, "#", `$(date)`, "_|_", `{{ .Values }}`, "\u202eevil", "it's", "`tick`", strings.Repeat("long ", 2000),
}

func TestJ4HostileValuesArriveVerbatim(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	env, files := map[string]any{}, map[string]any{}
	for i, h := range hostile {
		env[fmt.Sprintf("V%02d", i)] = h
		files[fmt.Sprintf("f%02d", i)] = h
	}
	s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25", "replicas": int64(1), "env": env, "files": files}))
	s.ExpectReady("shop")
	data, _ := s.Get("ConfigMap", "shop").Object["data"].(map[string]any)
	containers, _ := harness.Field(s.Get("Deployment", "shop"), "spec", "template", "spec", "containers").([]any)
	got, _ := containers[0].(map[string]any)["env"].([]any)
	if len(data) != len(hostile) || len(got) != len(hostile) {
		t.Fatalf("%d files and %d variables arrived, not %d", len(data), len(got), len(hostile))
	}
	for i, h := range hostile {
		variable, _ := got[i].(map[string]any)
		if data[fmt.Sprintf("f%02d", i)] != h || variable["value"] != h {
			t.Errorf("%q became %q and %q", h, data[fmt.Sprintf("f%02d", i)], variable["value"])
		}
	}
}
