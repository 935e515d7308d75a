package e2e

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forcedPerCheck is the number of reconciles that a check triggers to see that nothing changes.
const forcedPerCheck = 5

func TestE8FieldsOfOtherManagersAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25", "env": map[string]any{"MODE": "fast"}}))
	s.ExpectReady("shop")
	s.applyAs("injector", foreignFields(s.Namespace))
	s.Patch(s.Ref("Service", "shop"), map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"team": "blue"}, "finalizers": []any{"example.com/dns"},
	}})
	// Until its controller has seen the change, the resource is Ready.
	s.ExpectObject(s.Ref("Deployment", "shop"), "to be rolled out", func(u *unstructured.Unstructured) error { return checkRolledOut(u, "nginx:1.25", 3) })
	s.ExpectReady("shop")
	s.WaitUntilIdle()

	from := harness.MarkAudit(t)
	for range forcedPerCheck {
		s.reconcileOnce("shop")
	}
	if writes := s.OperatorRequests(from).Mutating(); len(writes) > 0 {
		t.Errorf("%d reconciles beside foreign fields wrote: %s", forcedPerCheck, writes)
	}
	s.Patch(cr, harness.Spec(map[string]any{"image": "nginx:1.26"}))
	s.ExpectReady("shop")
	expectForeignFields(t, s.Get("Deployment", "shop"))
	service := s.Get("Service", "shop")
	if service.GetLabels()["team"] != "blue" || len(service.GetFinalizers()) != 1 {
		t.Errorf("the Service has labels %v and finalizers %v", service.GetLabels(), service.GetFinalizers())
	}
	s.JSONPatch(service, map[string]any{"op": "remove", "path": "/metadata/finalizers"})
}

// foreignFields are the fields that a sidecar injector adds to a Deployment.
func foreignFields(namespace string) *unstructured.Unstructured {
	u := harness.Object("apps/v1", "Deployment", namespace, "shop")
	u.SetLabels(map[string]string{"team": "blue"})
	u.SetAnnotations(map[string]string{"injector.example.com/revision": "7"})
	u.Object["spec"] = map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"injector.example.com/injected": "yes"}},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "web", "env": []any{map[string]any{"name": "PROXY", "value": "on"}}},
			map[string]any{"name": "proxy", "image": "proxy:1"},
		}},
	}}
	return u
}

func expectForeignFields(t *testing.T, d *unstructured.Unstructured) {
	t.Helper()
	if d.GetLabels()["team"] != "blue" || d.GetAnnotations()["injector.example.com/revision"] != "7" {
		t.Errorf("the Deployment has labels %v and annotations %v", d.GetLabels(), d.GetAnnotations())
	}
	if got := harness.Field(d, "spec", "template", "metadata", "annotations", "injector.example.com/injected"); got != "yes" {
		t.Errorf("the annotation of the pods is %v", got)
	}
	env := map[any]any{}
	containers, _ := harness.Field(d, "spec", "template", "spec", "containers").([]any)
	for _, c := range containers {
		list, _ := c.(map[string]any)["env"].([]any)
		for _, e := range list {
			env[e.(map[string]any)["name"]] = e.(map[string]any)["value"]
		}
	}
	if len(containers) != 2 || fmt.Sprint(env) != "map[MODE:fast PROXY:on]" {
		t.Errorf("there are %d containers with variables %v", len(containers), env)
	}
	first, _ := containers[0].(map[string]any)
	if first["image"] != "nginx:1.26" {
		t.Errorf("the image is %v", first["image"])
	}
}

// applyAs applies an object by server-side apply as a field manager.
func (s *env) applyAs(manager string, u *unstructured.Unstructured) {
	s.T.Helper()
	if err := harness.Suite.Admin.Apply(s.T.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager)); err != nil {
		s.T.Fatal(err)
	}
}

func TestE1ReplicasOfAnAutoscalerAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	s.scale(5)
	s.expectAvailable(5)
	s.WaitUntilIdle()

	from := harness.MarkAudit(t)
	for range forcedPerCheck {
		s.reconcileOnce("shop")
	}
	if writes := s.OperatorRequests(from).Mutating(); len(writes) > 0 {
		t.Errorf("%d reconciles wrote: %s", forcedPerCheck, writes)
	}
	s.Patch(cr, harness.Spec(map[string]any{"image": "nginx:1.26"}))
	s.ExpectReady("shop")
	if err := checkRolledOut(s.Get("Deployment", "shop"), "nginx:1.26", 5); err != nil {
		t.Errorf("after a change of the image: %v", err)
	}
}

// scale sets the replicas of the Deployment as an autoscaler does.
func (s *env) scale(replicas int) {
	s.T.Helper()
	patch := client.RawPatch(types.MergePatchType, harness.Encode(s.T, harness.Spec(map[string]any{"replicas": replicas})))
	if err := harness.Suite.Admin.SubResource("scale").Patch(s.T.Context(), s.Ref("Deployment", "shop"), patch, client.FieldOwner("kube-controller-manager")); err != nil {
		s.T.Fatal(err)
	}
}

func (s *env) expectAvailable(replicas int64) {
	s.T.Helper()
	s.ExpectObject(s.Ref("Deployment", "shop"), fmt.Sprintf("to have %d replicas", replicas), func(d *unstructured.Unstructured) error {
		if got, _ := harness.Field(d, "status", "availableReplicas").(int64); got != replicas {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
}

func TestE1SwitchingAutoscalingOnKeepsTheReplicasThatRun(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25", "replicas": int64(5)}))
	s.ExpectReady("shop")
	s.Patch(cr, harness.Spec(map[string]any{"autoscaling": map[string]any{"enabled": true, "minReplicas": int64(2)}}))
	s.ExpectReady("shop")
	if got := harness.Field(s.Get("Deployment", "shop"), "spec", "replicas"); got != int64(5) {
		t.Errorf("the Deployment has %v replicas, not the 5 that ran", got)
	}
}

func TestE2ChangesOfAnAdmissionPolicyAreLeftAlone(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.mutateDeployments()
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	for _, image := range []string{"nginx:1.25", "nginx:1.26"} {
		s.Patch(cr, harness.Spec(map[string]any{"image": image}))
		s.ExpectReady("shop")
		d := s.Get("Deployment", "shop")
		if err := checkRolledOut(d, "mirror.example.com/"+image, 1); err != nil || d.GetLabels()["injected"] != "yes" {
			t.Fatalf("the policy has not taken effect: labels %v, %v", d.GetLabels(), err)
		}
		s.WaitUntilIdle()
		from := harness.MarkAudit(t)
		for range forcedPerCheck {
			s.reconcileOnce("shop")
		}
		if writes := s.OperatorRequests(from).Mutating(); len(writes) > 0 {
			t.Errorf("%d reconciles beside an admission policy wrote: %s", forcedPerCheck, writes)
		}
	}
}

// mutateDeployments makes the API server mutate each Deployment of the site: it rewrites the image and
// adds a label, as policies and injectors do.
func (s *env) mutateDeployments() {
	s.T.Helper()
	image := "object.spec.template.spec.containers[0].image"
	s.mutate("apps", "deployments",
		map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
			"expression": `Object{metadata: Object.metadata{labels: {"injected": "yes"}}}`,
		}},
		map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{
			"expression": `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image",
				value: ` + image + `.startsWith("mirror.") ? ` + image + ` : "mirror.example.com/" + ` + image + `}]`,
		}})
	// The API server applies a new policy after a moment.
	probe := s.Ref("Deployment", "probe")
	probe.Object["spec"] = podSpec("probe")
	harness.Eventually(s.T, "the admission policy", func() error {
		u := probe.DeepCopy()
		if err := harness.Suite.Admin.Create(s.T.Context(), u); err != nil {
			return err
		}
		defer s.Delete(u)
		if u.GetLabels()["injected"] != "yes" {
			return harness.ErrNotYet
		}
		return nil
	})
}

// mutate makes the API server mutate each write to a resource of the site.
func (s *env) mutate(group, resource string, mutations ...any) {
	s.T.Helper()
	const version = "admissionregistration.k8s.io/v1"
	policy := harness.Object(version, "MutatingAdmissionPolicy", "", s.Namespace)
	policy.Object["spec"] = map[string]any{
		"failurePolicy": "Fail", "reinvocationPolicy": "Never",
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.Namespace}},
			"resourceRules": []any{map[string]any{
				"apiGroups": []any{group}, "apiVersions": []any{"v1"}, "resources": []any{resource}, "operations": []any{"CREATE", "UPDATE"},
			}},
		},
		"mutations": mutations,
	}
	binding := harness.Object(version, "MutatingAdmissionPolicyBinding", "", s.Namespace)
	binding.Object["spec"] = map[string]any{"policyName": s.Namespace}
	for _, u := range []*unstructured.Unstructured{policy, binding} {
		s.Create(u)
		s.T.Cleanup(func() { _ = harness.Suite.Admin.Delete(context.WithoutCancel(s.T.Context()), u) })
	}
}
