package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// allFields is a spec that renders all eight kinds of object.
func allFields() map[string]any {
	return map[string]any{
		"image":       "nginx:1.25",
		"files":       map[string]any{"index.html": "hello"},
		"secrets":     map[string]any{"TOKEN": "opensesame"},
		"ingress":     map[string]any{"enabled": true, "host": "shop.example.com"},
		"autoscaling": map[string]any{"enabled": true, "minReplicas": int64(2)},
	}
}

// kinds are the kinds of object of a WebApp in the order of their components.
var kinds = []string{
	"ConfigMap", "Secret", "ServiceAccount", "Deployment", "Service", "Ingress", "HorizontalPodAutoscaler", "PodDisruptionBudget",
}

func TestWebAppWithAllEightKindsOfObjectBecomesReady(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartOperator(harness.PackageDir("webapp"))
	began := time.Now()
	s.Create(s.Webapp("shop", allFields()))
	cr := s.ExpectReady("shop")
	t.Logf("ready after %s: %v", harness.Elapsed(began), harness.Condition(cr, "Ready")["message"])

	for _, kind := range kinds {
		u := s.Get(kind, "shop")
		refs := u.GetOwnerReferences()
		if len(refs) != 1 || refs[0].UID != cr.GetUID() || refs[0].Controller == nil || !*refs[0].Controller {
			t.Errorf("%s: owner references are %v", kind, refs)
		}
	}
	if got := harness.Field(cr, "status", "availableReplicas"); got != int64(2) {
		t.Errorf("availableReplicas is %v", got)
	}
	if got, want := harness.Field(cr, "status", "url"), fmt.Sprintf("http://shop.%s.svc:80", s.Namespace); got != want {
		t.Errorf("url is %v, not %s", got, want)
	}
	s.ExpectEvent("shop", "Created", "Deployment "+s.Namespace+"/shop")
	s.ExpectEvent("shop", "BecameReady")
	if strings.Contains(o.Log.From(0), "opensesame") {
		t.Error("J8: the log holds a value of the Secret")
	}
	if strings.Contains(string(harness.Encode(t, cr.Object["status"])), "opensesame") {
		t.Error("J8: the status holds a value of the Secret")
	}
}

func TestExampleOfTheSeedRendersDeploymentAndServiceNamedAsTheResource(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	s.Kubectl("apply", "-f", harness.Suite.Root+"/config/samples/webapp.yaml")
	s.ExpectReady("nginx-app")

	d := s.Get("Deployment", "nginx-app")
	containers, _ := harness.Field(d, "spec", "template", "spec", "containers").([]any)
	container, _ := containers[0].(map[string]any)
	if container["image"] != "nginx:1.25" || harness.Field(d, "spec", "replicas") != int64(3) {
		t.Errorf("the Deployment has image %v and %v replicas", container["image"], harness.Field(d, "spec", "replicas"))
	}
	ports, _ := harness.Field(s.Get("Service", "nginx-app"), "spec", "ports").([]any)
	if port, _ := ports[0].(map[string]any); len(ports) != 1 || port["port"] != int64(80) {
		t.Errorf("the Service has ports %v", ports)
	}
	for _, kind := range []string{"Ingress", "HorizontalPodAutoscaler"} {
		if u, err := s.Lookup(kind, "nginx-app"); u != nil || err != nil {
			t.Errorf("%s exists without being asked for (error %v)", kind, err)
		}
	}
}

func TestKubectlWaitForReadyNeverReturnsBeforeTheEditIsRolledOut(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", map[string]any{"image": "nginx:0", "replicas": int64(2)}))
	for edit := range 6 {
		image := fmt.Sprintf("nginx:%d", edit)
		if edit > 0 {
			s.Patch(cr, harness.Spec(map[string]any{"image": image}))
		}
		began := time.Now()
		s.Kubectl("wait", "--for=condition=Ready", "--timeout=90s", "webapp/shop")
		t.Logf("edit %d: kubectl wait returned after %s", edit, harness.Elapsed(began))
		if err := checkRolledOut(s.Get("Deployment", "shop"), image, 2); err != nil {
			t.Fatalf("edit %d: kubectl wait returned early: %v", edit, err)
		}
	}
}

// checkRolledOut returns nil if each replica of a Deployment has an image and is available.
func checkRolledOut(d *unstructured.Unstructured, image string, replicas int64) error {
	containers, _ := harness.Field(d, "spec", "template", "spec", "containers").([]any)
	if got := containers[0].(map[string]any)["image"]; got != image {
		return fmt.Errorf("the image is %v, not %s", got, image)
	}
	if got := harness.Field(d, "status", "observedGeneration"); got != d.GetGeneration() {
		return fmt.Errorf("its controller has seen generation %v, not %d", got, d.GetGeneration())
	}
	for _, count := range []string{"replicas", "updatedReplicas", "availableReplicas"} {
		got, _ := harness.Field(d, "status", count).(int64)
		if got != replicas {
			return fmt.Errorf("%s is %d, not %d", count, got, replicas)
		}
	}
	return nil
}
