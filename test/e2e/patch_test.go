package e2e

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// containers is a strategic merge patch of the containers of a Deployment.
func containers(list ...any) map[string]any {
	return harness.Spec(map[string]any{"template": map[string]any{"spec": map[string]any{"containers": list}}})
}

// expectField waits until a field of an object has a value.
func (s *env) expectField(kind, name string, want any, path ...string) {
	s.T.Helper()
	s.ExpectObject(s.Ref(kind, name), fmt.Sprintf("to have %v in %v", want, path), func(u *unstructured.Unstructured) error {
		if got := harness.Field(u, path...); !reflect.DeepEqual(got, want) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

// expectPatches waits until a WebApp names the patches in effect.
func (s *env) expectPatches(name string, want ...any) {
	s.T.Helper()
	s.ExpectObject(s.Ref("WebApp", name), fmt.Sprintf("to name the patches %v", want), func(u *unstructured.Unstructured) error {
		got, _ := harness.Field(u, "status", "patches").([]any)
		if len(got) == len(want) && (len(want) == 0 || reflect.DeepEqual(got, want)) {
			return nil
		}
		return fmt.Errorf("it names %v", got)
	})
}

// image returns the image of the first container of a Deployment, and its arguments.
func image(u *unstructured.Unstructured) (any, any) {
	list, _ := harness.Field(u, "spec", "template", "spec", "containers").([]any)
	if len(list) == 0 {
		return nil, nil
	}
	c, _ := list[0].(map[string]any)
	return c["image"], c["args"]
}

func TestPatchByStrategicMergeChangesADeploymentAndGoesAgain(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.Create(s.Webapp("other", map[string]any{"image": "nginx:1.25"}))
	s.ExpectReady("shop")
	s.ExpectReady("other")
	s.WaitUntilIdle()
	before, bystander := s.Get("Deployment", "shop"), s.Get("Deployment", "other")
	list := harness.Field(before, "spec", "template", "spec", "containers").([]any)
	name := list[0].(map[string]any)["name"]

	from := harness.MarkAudit(t)
	s.Create(s.NewPatch("hotfix", "shop", 0, harness.StrategicMerge("web.deployment", containers(map[string]any{"name": name, "image": "nginx:1.26"}))))
	p := s.ExpectPatch("hotfix", "Applied")
	applied := []any{map[string]any{"address": "web.deployment", "object": "Deployment " + s.Namespace + "/shop"}}
	if got := harness.Field(p, "status", "applied"); !reflect.DeepEqual(got, applied) {
		t.Errorf("the patch says it is applied to %v, not %v", got, applied)
	}
	after := s.Get("Deployment", "shop")
	if got, _ := image(after); got != "nginx:1.26" {
		t.Errorf("the image is %v", got)
	}
	if n := len(harness.Field(after, "spec", "template", "spec", "containers").([]any)); n != len(list) {
		t.Errorf("there are %d containers, and were %d", n, len(list))
	}
	s.ExpectReady("shop")
	s.expectPatches("shop", "hotfix")
	s.WaitUntilIdle()
	if n := len(s.OperatorRequests(from).Mutating().OfResource("deployments")); n != 1 {
		t.Errorf("the patch took %d writes of the Deployment", n)
	}
	if got := s.Get("Deployment", "other"); got.GetResourceVersion() != bystander.GetResourceVersion() && got.GetGeneration() != bystander.GetGeneration() {
		t.Error("another WebApp was changed as well")
	}

	// A field that another client changes is reverted to the value of the Patch.
	s.JSONPatch(after, map[string]any{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:evil"})
	s.ExpectObject(after, "to be repaired", func(u *unstructured.Unstructured) error {
		if got, _ := image(u); got != "nginx:1.26" {
			return fmt.Errorf("its image is %v", got)
		}
		return nil
	})
	s.ExpectReady("shop")
	s.WaitUntilIdle()

	from = harness.MarkAudit(t)
	s.Delete(s.PatchRef("hotfix"))
	s.ExpectObject(after, "to be the package's again", func(u *unstructured.Unstructured) error {
		if got, _ := image(u); got != "nginx:1.25" {
			return fmt.Errorf("its image is %v", got)
		}
		return nil
	})
	s.expectPatches("shop")
	s.ExpectReady("shop")
	s.WaitUntilIdle()
	if n := len(s.OperatorRequests(from).Mutating().OfResource("deployments")); n != 1 {
		t.Errorf("the way back took %d writes of the Deployment", n)
	}
	want, got := before.DeepCopy(), s.Get("Deployment", "shop")
	if !reflect.DeepEqual(want.Object["spec"], got.Object["spec"]) || !reflect.DeepEqual(want.GetAnnotations()["operetta.dev/applied"], got.GetAnnotations()["operetta.dev/applied"]) {
		t.Errorf("the Deployment is not as it was:\n%s\n%s", harness.Encode(t, want.Object), harness.Encode(t, got.Object))
	}
}

func TestPatchesApplyInTheirOrderByJSON6902AndNull(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	label := func(value string) map[string]any {
		return harness.JSONOperations("web.service", map[string]any{"op": "add", "path": "/metadata/labels/example.com~1last", "value": value})
	}
	// The Patch that is applied last is the older one.
	s.Create(s.NewPatch("second", "shop", 20, label("second")))
	s.Create(s.NewPatch("first", "shop", 10, label("first"),
		harness.StrategicMerge("web.deployment", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/managed-by": nil}}})))
	s.ExpectPatch("first", "TargetNotFound", "shop")
	s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.ExpectReady("shop")
	s.ExpectPatch("first", "Applied", "2 objects")
	s.ExpectPatch("second", "Applied")
	s.expectPatches("shop", "first", "second")
	s.expectField("Service", "shop", "second", "metadata", "labels", "example.com/last")
	s.ExpectObject(s.Ref("Deployment", "shop"), "to have lost the label that null removes", func(u *unstructured.Unstructured) error {
		if _, there := u.GetLabels()["app.kubernetes.io/managed-by"]; there {
			return fmt.Errorf("its labels are %v", u.GetLabels())
		}
		return nil
	})

	s.Patch(s.PatchRef("first"), harness.Spec(map[string]any{"order": 30}))
	s.expectField("Service", "shop", "first", "metadata", "labels", "example.com/last")
	s.ExpectPatch("first", "Applied")
	s.expectPatches("shop", "second", "first")
}

func TestPatchThatDoesNotFitIsReportedAndStopsNothing(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.ExpectReady("shop")
	s.Create(s.NewPatch("typo", "shop", 0,
		harness.StrategicMerge("web.deploy", harness.Spec(map[string]any{"replicas": int64(2)})),
		harness.StrategicMerge("web.service", map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.com/typo": "no"}}})))
	s.Create(s.NewPatch("rename", "shop", 1, harness.StrategicMerge("web.service", map[string]any{"metadata": map[string]any{"name": "other"}})))
	s.Create(s.NewPatch("stale", "shop", 2, harness.JSONOperations("web.service", map[string]any{"op": "test", "path": "/spec/type", "value": "Nowhere"})))
	s.Create(s.NewPatch("lost", "nobody", 3, harness.StrategicMerge("web.service", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})))
	s.Create(s.NewPatch("good", "shop", 4, harness.StrategicMerge("web.service", map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.com/good": "yes"}}})))

	p := s.ExpectPatch("typo", "NoSuchObject", "web.deploy", "deployment")
	unmatched, _ := harness.Field(p, "status", "unmatched").([]any)
	if len(unmatched) != 1 || unmatched[0].(map[string]any)["address"] != "web.deploy" {
		t.Errorf("unmatched are %v", unmatched)
	}
	s.ExpectPatch("rename", "Invalid", "metadata.name")
	s.ExpectPatch("stale", "Conflict", "/spec/type")
	s.ExpectPatch("lost", "TargetNotFound", "nobody")
	s.ExpectPatch("good", "Applied")
	s.expectField("Service", "shop", "no", "metadata", "labels", "example.com/typo")
	s.expectField("Service", "shop", "yes", "metadata", "labels", "example.com/good")
	s.ExpectReady("shop")
	s.expectPatches("shop", "typo", "good")

	// And all of that at rest: no request for any of them.
	s.WaitUntilIdle()
	from := harness.MarkAudit(t)
	s.reconcileOnce("shop")
	if asked := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" }); len(asked) > 0 {
		t.Errorf("patches cost requests at rest: %s", asked)
	}
}

func TestPatchSurvivesARestartOfTheOperator(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.Create(s.NewPatch("hotfix", "shop", 0, harness.JSONOperations("web.deployment", map[string]any{"op": "add", "path": "/metadata/labels/example.com~1hotfix", "value": "yes"})))
	s.ExpectPatch("hotfix", "Applied")
	s.ExpectReady("shop")
	s.WaitUntilIdle()
	versions := s.versions()
	o.Stop()
	if out, err := s.dryRun(harness.PackageDir("webapp")); err != nil || strings.Contains(out, "  ~ ") {
		t.Errorf("a dry run would take the patch back: %v\n%s", err, out)
	}
	from := harness.MarkAudit(t)
	s.StartOperator(harness.PackageDir("webapp"))
	s.reconcileOnce("shop")
	s.WaitUntilIdle()
	if writes := s.OperatorRequests(from).Mutating().Filter(func(e controlplane.AuditEvent) bool { return e.Resource != "customresourcedefinitions" }); len(writes) > 0 {
		t.Errorf("the restart wrote %s", writes)
	}
	for object, version := range s.versions() {
		if object != "WebApp shop" && versions[object] != version {
			t.Errorf("%s was changed by the restart", object)
		}
	}
}

func TestPatchIsCheckedByTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	both := harness.StrategicMerge("web.deployment", map[string]any{})
	both["json6902"] = []any{map[string]any{"op": "remove", "path": "/spec/replicas"}}
	for name, tc := range map[string]struct {
		reason string
		change any
	}{
		"both":      {"exactly one of the two", both},
		"neither":   {"exactly one of the two", map[string]any{"address": "web.deployment"}},
		"operation": {"the operations of RFC 6902 and no others", harness.JSONOperations("web.deployment", map[string]any{"op": "drop", "path": "/spec"})},
	} {
		if err := harness.Suite.Admin.Create(t.Context(), s.NewPatch(name, "shop", 0, tc.change)); err == nil {
			t.Errorf("%s is accepted, and should be refused: %s", name, tc.reason)
		}
	}
	if got := s.Kubectl("get", "opatch"); got != "" {
		t.Errorf("there are %s", got)
	}
}

func TestPatchForNobodyIsToldSo(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "everywhere", plainBody+"scope: \"Cluster\"\n")
	s.StartOperator(harness.PackageDir("webapp"), p.Dir)
	s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.ExpectReady("shop")
	change := harness.StrategicMerge("web.service", map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.com/late": "yes"}}})
	aimed := func(name, apiVersion, kind string) *unstructured.Unstructured {
		u := s.NewPatch(name, "shop", 0, change)
		u.Object["spec"].(map[string]any)["target"] = map[string]any{"apiVersion": apiVersion, "kind": kind, "name": "shop"}
		return s.Create(u)
	}
	mistyped := aimed("mistyped", "example.com/v1", "WebAp")
	aimed("group", "exampel.com/v1", "WebApp")
	aimed("object", "apps/v1", "Deployment")
	aimed("global", p.Name+".example.com/v1", "Thing")
	s.ExpectPatch("mistyped", "NoSuchKind", "the cluster does not serve WebAp.example.com")
	s.ExpectPatch("group", "NoSuchKind", "WebApp.exampel.com")
	s.ExpectPatch("object", "NoSuchKind", "Deployment.apps is not the kind of a package")
	s.ExpectPatch("global", "TargetClusterScoped", "Thing.everywhere.example.com is cluster-scoped")
	s.ExpectReady("shop")

	s.Patch(mistyped, harness.Spec(map[string]any{"target": map[string]any{"kind": "WebApp"}}))
	s.ExpectPatch("mistyped", "Applied")
	s.expectField("Service", "shop", "yes", "metadata", "labels", "example.com/late")
	// And all of that at rest.
	s.WaitUntilIdle()
	from := harness.MarkAudit(t)
	s.reconcileOnce("shop")
	if asked := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" }); len(asked) > 0 {
		t.Errorf("patches for nobody cost requests at rest: %s", asked)
	}
}
