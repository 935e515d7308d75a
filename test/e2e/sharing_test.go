package e2e

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pokes is how many reconciles are forced to see that something stays as it is.
const pokes = 5

func TestE8FieldsOfOtherManagersAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25", "env": map[string]any{"MODE": "fast"}}))
	s.expectReady("shop")
	s.applyAs("injector", foreignFields(s.namespace))
	s.patch(s.ref("Service", "shop"), map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"team": "blue"}, "finalizers": []any{"example.com/dns"},
	}})
	s.expectReady("shop")
	s.settle()

	from := mark(t)
	for range pokes {
		s.reconcileOnce("shop")
	}
	if writes := s.operatorRequests(from).mutating(); len(writes) > 0 {
		t.Errorf("%d reconciles beside foreign fields wrote: %s", pokes, writes)
	}
	s.patch(cr, spec(map[string]any{"image": "nginx:1.26"}))
	s.expectReady("shop")
	expectForeignFields(t, s.get("Deployment", "shop"))
	service := s.get("Service", "shop")
	if service.GetLabels()["team"] != "blue" || len(service.GetFinalizers()) != 1 {
		t.Errorf("the Service has labels %v and finalizers %v", service.GetLabels(), service.GetFinalizers())
	}
	s.jsonPatch(service, map[string]any{"op": "remove", "path": "/metadata/finalizers"})
}

// foreignFields is what an injector of sidecars adds to a Deployment.
func foreignFields(namespace string) *unstructured.Unstructured {
	u := object("apps/v1", "Deployment", namespace, "shop")
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
	if got := field(d, "spec", "template", "metadata", "annotations", "injector.example.com/injected"); got != "yes" {
		t.Errorf("the annotation of the pods is %v", got)
	}
	env := map[any]any{}
	containers, _ := field(d, "spec", "template", "spec", "containers").([]any)
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

// applyAs applies an object by server-side apply under a manager's name.
func (s *site) applyAs(manager string, u *unstructured.Unstructured) {
	s.t.Helper()
	if err := world.admin.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager)); err != nil {
		s.t.Fatal(err)
	}
}

func TestE1ReplicasOfAnAutoscalerAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", everything()))
	s.expectReady("shop")
	s.scale(5)
	s.expectAvailable(5)
	s.settle()

	from := mark(t)
	for range pokes {
		s.reconcileOnce("shop")
	}
	if writes := s.operatorRequests(from).mutating(); len(writes) > 0 {
		t.Errorf("%d reconciles wrote: %s", pokes, writes)
	}
	s.patch(cr, spec(map[string]any{"image": "nginx:1.26"}))
	s.expectReady("shop")
	if err := rolledOut(s.get("Deployment", "shop"), "nginx:1.26", 5); err != nil {
		t.Errorf("after a change of the image: %v", err)
	}
}

// scale sets the replicas of the Deployment as an autoscaler does.
func (s *site) scale(replicas int) {
	s.t.Helper()
	patch := client.RawPatch(types.MergePatchType, encode(s.t, spec(map[string]any{"replicas": replicas})))
	if err := world.admin.SubResource("scale").Patch(s.t.Context(), s.ref("Deployment", "shop"), patch, client.FieldOwner("kube-controller-manager")); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) expectAvailable(replicas int64) {
	s.t.Helper()
	s.expectThat(s.ref("Deployment", "shop"), fmt.Sprintf("to have %d replicas", replicas), func(d *unstructured.Unstructured) error {
		if got, _ := field(d, "status", "availableReplicas").(int64); got != replicas {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
}

func TestE1SwitchingAutoscalingOnKeepsTheReplicasThatRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25", "replicas": int64(5)}))
	s.expectReady("shop")
	s.patch(cr, spec(map[string]any{"autoscaling": map[string]any{"enabled": true, "minReplicas": int64(2)}}))
	s.expectReady("shop")
	if got := field(s.get("Deployment", "shop"), "spec", "replicas"); got != int64(5) {
		t.Errorf("the Deployment has %v replicas, not the 5 that ran", got)
	}
}

func TestE2ChangesOfAnAdmissionPolicyAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mutateDeployments()
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25", "replicas": int64(1)}))
	for _, image := range []string{"nginx:1.25", "nginx:1.26"} {
		s.patch(cr, spec(map[string]any{"image": image}))
		s.expectReady("shop")
		d := s.get("Deployment", "shop")
		if err := rolledOut(d, "mirror.example.com/"+image, 1); err != nil || d.GetLabels()["injected"] != "yes" {
			t.Fatalf("the policy has not taken effect: labels %v, %v", d.GetLabels(), err)
		}
		s.settle()
		from := mark(t)
		for range pokes {
			s.reconcileOnce("shop")
		}
		if writes := s.operatorRequests(from).mutating(); len(writes) > 0 {
			t.Errorf("%d reconciles beside an admission policy wrote: %s", pokes, writes)
		}
	}
}

// mutateDeployments makes the API server itself change each Deployment of the site:
// it rewrites the image and adds a label, as policies and injectors do.
func (s *site) mutateDeployments() {
	s.t.Helper()
	image := "object.spec.template.spec.containers[0].image"
	s.mutate("apps", "deployments",
		map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
			"expression": `Object{metadata: Object.metadata{labels: {"injected": "yes"}}}`,
		}},
		map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{
			"expression": `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image",
				value: ` + image + `.startsWith("mirror.") ? ` + image + ` : "mirror.example.com/" + ` + image + `}]`,
		}})
	// The API server follows its policies after a moment.
	probe := s.ref("Deployment", "probe")
	probe.Object["spec"] = podSpec("probe")
	eventually(s.t, "the admission policy", func() error {
		u := probe.DeepCopy()
		if err := world.admin.Create(s.t.Context(), u); err != nil {
			return err
		}
		defer s.delete(u)
		if u.GetLabels()["injected"] != "yes" {
			return errNotYet
		}
		return nil
	})
}

// mutate makes the API server itself change what is written of a resource on the site.
func (s *site) mutate(group, resource string, mutations ...any) {
	s.t.Helper()
	const version = "admissionregistration.k8s.io/v1"
	policy := object(version, "MutatingAdmissionPolicy", "", s.namespace)
	policy.Object["spec"] = map[string]any{
		"failurePolicy": "Fail", "reinvocationPolicy": "Never",
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.namespace}},
			"resourceRules": []any{map[string]any{
				"apiGroups": []any{group}, "apiVersions": []any{"v1"}, "resources": []any{resource}, "operations": []any{"CREATE", "UPDATE"},
			}},
		},
		"mutations": mutations,
	}
	binding := object(version, "MutatingAdmissionPolicyBinding", "", s.namespace)
	binding.Object["spec"] = map[string]any{"policyName": s.namespace}
	for _, u := range []*unstructured.Unstructured{policy, binding} {
		s.create(u)
		s.t.Cleanup(func() { _ = world.admin.Delete(context.WithoutCancel(s.t.Context()), u) })
	}
}
