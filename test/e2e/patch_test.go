package e2e

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
)

// patchRef returns a Patch with nothing but its identity.
func (s *site) patchRef(name string) *unstructured.Unstructured {
	return object("operetta.dev/v1alpha1", "Patch", s.namespace, name)
}

// newPatch returns a Patch of a WebApp.
func (s *site) newPatch(name, target string, order int64, changes ...any) *unstructured.Unstructured {
	u := s.patchRef(name)
	u.Object["spec"] = map[string]any{
		"target":  map[string]any{"apiVersion": "example.com/v1", "kind": "WebApp", "name": target},
		"order":   order,
		"patches": changes,
	}
	return u
}

// merges is a change by strategic merge.
func merges(address string, merge map[string]any) map[string]any {
	return map[string]any{"address": address, "strategicMerge": merge}
}

// operates is a change by JSON 6902.
func operates(address string, operations ...any) map[string]any {
	return map[string]any{"address": address, "json6902": operations}
}

// containers is a strategic merge patch of the containers of a Deployment.
func containers(list ...any) map[string]any {
	return spec(map[string]any{"template": map[string]any{"spec": map[string]any{"containers": list}}})
}

// expectPatch waits until a patch says a reason for its generation, and returns it.
func (s *site) expectPatch(name, reason string, parts ...string) *unstructured.Unstructured {
	s.t.Helper()
	return s.expectThat(s.patchRef(name), "to be "+reason, func(u *unstructured.Unstructured) error {
		c := condition(u, "Applied")
		message, _ := c["message"].(string)
		if c["reason"] == reason && c["observedGeneration"] == u.GetGeneration() && containsAll(message, parts) &&
			(c["status"] == "True") == (reason == "Applied") {
			return nil
		}
		return fmt.Errorf("its status is %s; wanted %s with %q", encode(s.t, u.Object["status"]), reason, parts)
	})
}

// expectField waits until a field of an object has a value.
func (s *site) expectField(kind, name string, want any, path ...string) {
	s.t.Helper()
	s.expectThat(s.ref(kind, name), fmt.Sprintf("to have %v in %v", want, path), func(u *unstructured.Unstructured) error {
		if got := field(u, path...); !reflect.DeepEqual(got, want) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

// expectPatches waits until a WebApp names the patches in effect.
func (s *site) expectPatches(name string, want ...any) {
	s.t.Helper()
	s.expectThat(s.ref("WebApp", name), fmt.Sprintf("to name the patches %v", want), func(u *unstructured.Unstructured) error {
		got, _ := field(u, "status", "patches").([]any)
		if len(got) == len(want) && (len(want) == 0 || reflect.DeepEqual(got, want)) {
			return nil
		}
		return fmt.Errorf("it names %v", got)
	})
}

// image returns the image of the first container of a Deployment, and its arguments.
func image(u *unstructured.Unstructured) (any, any) {
	list, _ := field(u, "spec", "template", "spec", "containers").([]any)
	if len(list) == 0 {
		return nil, nil
	}
	c, _ := list[0].(map[string]any)
	return c["image"], c["args"]
}

func TestPatchByStrategicMergeChangesADeploymentAndGoesAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.create(s.webapp("other", map[string]any{"image": "nginx:1.25"}))
	s.expectReady("shop")
	s.expectReady("other")
	s.settle()
	before, bystander := s.get("Deployment", "shop"), s.get("Deployment", "other")
	list := field(before, "spec", "template", "spec", "containers").([]any)
	name := list[0].(map[string]any)["name"]

	from := mark(t)
	s.create(s.newPatch("hotfix", "shop", 0, merges("web.deployment", containers(map[string]any{"name": name, "image": "nginx:1.26"}))))
	p := s.expectPatch("hotfix", "Applied")
	applied := []any{map[string]any{"address": "web.deployment", "object": "Deployment " + s.namespace + "/shop"}}
	if got := field(p, "status", "applied"); !reflect.DeepEqual(got, applied) {
		t.Errorf("the patch says it is applied to %v, not %v", got, applied)
	}
	after := s.get("Deployment", "shop")
	if got, _ := image(after); got != "nginx:1.26" {
		t.Errorf("the image is %v", got)
	}
	if n := len(field(after, "spec", "template", "spec", "containers").([]any)); n != len(list) {
		t.Errorf("there are %d containers, and were %d", n, len(list))
	}
	s.expectReady("shop")
	s.expectPatches("shop", "hotfix")
	s.settle()
	if n := len(s.operatorRequests(from).mutating().about("deployments")); n != 1 {
		t.Errorf("the patch took %d writes of the Deployment", n)
	}
	if got := s.get("Deployment", "other"); got.GetResourceVersion() != bystander.GetResourceVersion() && got.GetGeneration() != bystander.GetGeneration() {
		t.Error("another WebApp was changed as well")
	}

	// Whoever changes what the patch says is corrected towards the patch.
	s.jsonPatch(after, map[string]any{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:evil"})
	s.expectThat(after, "to be repaired", func(u *unstructured.Unstructured) error {
		if got, _ := image(u); got != "nginx:1.26" {
			return fmt.Errorf("its image is %v", got)
		}
		return nil
	})
	s.expectReady("shop")
	s.settle()

	from = mark(t)
	s.delete(s.patchRef("hotfix"))
	s.expectThat(after, "to be the package's again", func(u *unstructured.Unstructured) error {
		if got, _ := image(u); got != "nginx:1.25" {
			return fmt.Errorf("its image is %v", got)
		}
		return nil
	})
	s.expectPatches("shop")
	s.expectReady("shop")
	s.settle()
	if n := len(s.operatorRequests(from).mutating().about("deployments")); n != 1 {
		t.Errorf("the way back took %d writes of the Deployment", n)
	}
	want, got := before.DeepCopy(), s.get("Deployment", "shop")
	if !reflect.DeepEqual(want.Object["spec"], got.Object["spec"]) || !reflect.DeepEqual(want.GetAnnotations()["operetta.dev/applied"], got.GetAnnotations()["operetta.dev/applied"]) {
		t.Errorf("the Deployment is not as it was:\n%s\n%s", encode(t, want.Object), encode(t, got.Object))
	}
}

func TestPatchesApplyInTheirOrderByJSON6902AndNull(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	label := func(value string) map[string]any {
		return operates("web.service", map[string]any{"op": "add", "path": "/metadata/labels/example.com~1last", "value": value})
	}
	// The later one in order is the older one in age.
	s.create(s.newPatch("second", "shop", 20, label("second")))
	s.create(s.newPatch("first", "shop", 10, label("first"),
		merges("web.deployment", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/managed-by": nil}}})))
	s.expectPatch("first", "TargetNotFound", "shop")
	s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.expectReady("shop")
	s.expectPatch("first", "Applied", "2 objects")
	s.expectPatch("second", "Applied")
	s.expectPatches("shop", "first", "second")
	s.expectField("Service", "shop", "second", "metadata", "labels", "example.com/last")
	s.expectThat(s.ref("Deployment", "shop"), "to have lost the label that null removes", func(u *unstructured.Unstructured) error {
		if _, there := u.GetLabels()["app.kubernetes.io/managed-by"]; there {
			return fmt.Errorf("its labels are %v", u.GetLabels())
		}
		return nil
	})

	s.patch(s.patchRef("first"), spec(map[string]any{"order": 30}))
	s.expectField("Service", "shop", "first", "metadata", "labels", "example.com/last")
	s.expectPatch("first", "Applied")
	s.expectPatches("shop", "second", "first")
}

func TestPatchThatDoesNotFitIsReportedAndStopsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.expectReady("shop")
	s.create(s.newPatch("typo", "shop", 0,
		merges("web.deploy", spec(map[string]any{"replicas": int64(2)})),
		merges("web.service", map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.com/typo": "no"}}})))
	s.create(s.newPatch("rename", "shop", 1, merges("web.service", map[string]any{"metadata": map[string]any{"name": "other"}})))
	s.create(s.newPatch("stale", "shop", 2, operates("web.service", map[string]any{"op": "test", "path": "/spec/type", "value": "Nowhere"})))
	s.create(s.newPatch("lost", "nobody", 3, merges("web.service", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})))
	s.create(s.newPatch("good", "shop", 4, merges("web.service", map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.com/good": "yes"}}})))

	p := s.expectPatch("typo", "NoSuchObject", "web.deploy", "deployment")
	unmatched, _ := field(p, "status", "unmatched").([]any)
	if len(unmatched) != 1 || unmatched[0].(map[string]any)["address"] != "web.deploy" {
		t.Errorf("unmatched are %v", unmatched)
	}
	s.expectPatch("rename", "Invalid", "metadata.name")
	s.expectPatch("stale", "Conflict", "/spec/type")
	s.expectPatch("lost", "TargetNotFound", "nobody")
	s.expectPatch("good", "Applied")
	s.expectField("Service", "shop", "no", "metadata", "labels", "example.com/typo")
	s.expectField("Service", "shop", "yes", "metadata", "labels", "example.com/good")
	s.expectReady("shop")
	s.expectPatches("shop", "typo", "good")

	// And all of that at rest: no request for any of them.
	s.settle()
	from := mark(t)
	s.reconcileOnce("shop")
	if asked := s.operatorRequests(from).only(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" }); len(asked) > 0 {
		t.Errorf("patches cost requests at rest: %s", asked)
	}
}

func TestPatchSurvivesARestartOfTheOperator(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(packageOf("webapp"))
	s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.create(s.newPatch("hotfix", "shop", 0, operates("web.deployment", map[string]any{"op": "add", "path": "/metadata/labels/example.com~1hotfix", "value": "yes"})))
	s.expectPatch("hotfix", "Applied")
	s.expectReady("shop")
	s.settle()
	versions := s.versions()
	o.stop()
	if out, err := s.rehearse(packageOf("webapp")); err != nil || strings.Contains(out, "  ~ ") {
		t.Errorf("a dry run would take the patch back: %v\n%s", err, out)
	}
	from := mark(t)
	s.operate(packageOf("webapp"))
	s.reconcileOnce("shop")
	s.settle()
	if writes := s.operatorRequests(from).mutating().only(func(e controlplane.AuditEvent) bool { return e.Resource != "customresourcedefinitions" }); len(writes) > 0 {
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
	s := newSite(t)
	s.operate(packageOf("webapp"))
	both := merges("web.deployment", map[string]any{})
	both["json6902"] = []any{map[string]any{"op": "remove", "path": "/spec/replicas"}}
	for name, tc := range map[string]struct {
		reason string
		change any
	}{
		"both":      {"exactly one of the two", both},
		"neither":   {"exactly one of the two", map[string]any{"address": "web.deployment"}},
		"operation": {"the operations of RFC 6902 and no others", operates("web.deployment", map[string]any{"op": "drop", "path": "/spec"})},
	} {
		if err := world.admin.Create(t.Context(), s.newPatch(name, "shop", 0, tc.change)); err == nil {
			t.Errorf("%s is accepted, and should be refused: %s", name, tc.reason)
		}
	}
	if got := s.kubectl("get", "opatch"); got != "" {
		t.Errorf("there are %s", got)
	}
}

func TestPatchForNobodyIsToldSo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "everywhere", plain+"scope: \"Cluster\"\n")
	s.operate(packageOf("webapp"), p.dir)
	s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.expectReady("shop")
	change := merges("web.service", map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.com/late": "yes"}}})
	aimed := func(name, apiVersion, kind string) *unstructured.Unstructured {
		u := s.newPatch(name, "shop", 0, change)
		u.Object["spec"].(map[string]any)["target"] = map[string]any{"apiVersion": apiVersion, "kind": kind, "name": "shop"}
		return s.create(u)
	}
	mistyped := aimed("mistyped", "example.com/v1", "WebAp")
	aimed("group", "exampel.com/v1", "WebApp")
	aimed("object", "apps/v1", "Deployment")
	aimed("global", p.name+".example.com/v1", "Thing")
	s.expectPatch("mistyped", "NoSuchKind", "the cluster does not serve WebAp.example.com")
	s.expectPatch("group", "NoSuchKind", "WebApp.exampel.com")
	s.expectPatch("object", "NoSuchKind", "Deployment.apps is not the kind of a package")
	s.expectPatch("global", "TargetClusterScoped", "Thing.everywhere.example.com is cluster-scoped")
	s.expectReady("shop")

	s.patch(mistyped, spec(map[string]any{"target": map[string]any{"kind": "WebApp"}}))
	s.expectPatch("mistyped", "Applied")
	s.expectField("Service", "shop", "yes", "metadata", "labels", "example.com/late")
	// And all of that at rest.
	s.settle()
	from := mark(t)
	s.reconcileOnce("shop")
	if asked := s.operatorRequests(from).only(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" }); len(asked) > 0 {
		t.Errorf("patches for nobody cost requests at rest: %s", asked)
	}
}
