package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// everything is a spec for which all eight kinds of object are rendered.
func everything() map[string]any {
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
	s := newSite(t)
	o := s.operate(packageOf("webapp"))
	began := time.Now()
	s.create(s.webapp("shop", everything()))
	cr := s.expectReady("shop")
	t.Logf("ready after %s: %v", since(began), condition(cr, "Ready")["message"])

	for _, kind := range kinds {
		u := s.get(kind, "shop")
		refs := u.GetOwnerReferences()
		if len(refs) != 1 || refs[0].UID != cr.GetUID() || refs[0].Controller == nil || !*refs[0].Controller {
			t.Errorf("%s: owner references are %v", kind, refs)
		}
	}
	if got := field(cr, "status", "availableReplicas"); got != int64(2) {
		t.Errorf("availableReplicas is %v", got)
	}
	if got, want := field(cr, "status", "url"), fmt.Sprintf("http://shop.%s.svc:80", s.namespace); got != want {
		t.Errorf("url is %v, not %s", got, want)
	}
	s.expectEvent("shop", "Created", "Deployment "+s.namespace+"/shop")
	s.expectEvent("shop", "BecameReady")
	if strings.Contains(o.log.from(0), "opensesame") {
		t.Error("J8: the log holds a value of the Secret")
	}
	if strings.Contains(string(encode(t, cr.Object["status"])), "opensesame") {
		t.Error("J8: the status holds a value of the Secret")
	}
}

func TestExampleOfTheSeedRendersDeploymentAndServiceNamedAsTheResource(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	s.kubectl("apply", "-f", world.root+"/config/samples/webapp.yaml")
	s.expectReady("nginx-app")

	d := s.get("Deployment", "nginx-app")
	containers, _ := field(d, "spec", "template", "spec", "containers").([]any)
	container, _ := containers[0].(map[string]any)
	if container["image"] != "nginx:1.25" || field(d, "spec", "replicas") != int64(3) {
		t.Errorf("the Deployment has image %v and %v replicas", container["image"], field(d, "spec", "replicas"))
	}
	ports, _ := field(s.get("Service", "nginx-app"), "spec", "ports").([]any)
	if port, _ := ports[0].(map[string]any); len(ports) != 1 || port["port"] != int64(80) {
		t.Errorf("the Service has ports %v", ports)
	}
	for _, kind := range []string{"Ingress", "HorizontalPodAutoscaler"} {
		if u, err := s.find(kind, "nginx-app"); u != nil || err != nil {
			t.Errorf("%s exists without being asked for (error %v)", kind, err)
		}
	}
}

func TestKubectlWaitForReadyNeverReturnsBeforeTheEditIsRolledOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", map[string]any{"image": "nginx:0", "replicas": int64(2)}))
	for edit := range 6 {
		image := fmt.Sprintf("nginx:%d", edit)
		if edit > 0 {
			s.patch(cr, spec(map[string]any{"image": image}))
		}
		began := time.Now()
		s.kubectl("wait", "--for=condition=Ready", "--timeout=90s", "webapp/shop")
		t.Logf("edit %d: kubectl wait returned after %s", edit, since(began))
		if err := rolledOut(s.get("Deployment", "shop"), image, 2); err != nil {
			t.Fatalf("edit %d: kubectl wait returned early: %v", edit, err)
		}
	}
}

// rolledOut returns nil when each replica of a Deployment has an image and is available.
func rolledOut(d *unstructured.Unstructured, image string, replicas int64) error {
	containers, _ := field(d, "spec", "template", "spec", "containers").([]any)
	if got := containers[0].(map[string]any)["image"]; got != image {
		return fmt.Errorf("the image is %v, not %s", got, image)
	}
	if got := field(d, "status", "observedGeneration"); got != d.GetGeneration() {
		return fmt.Errorf("its controller has seen generation %v, not %d", got, d.GetGeneration())
	}
	for _, count := range []string{"replicas", "updatedReplicas", "availableReplicas"} {
		got, _ := field(d, "status", count).(int64)
		if got != replicas {
			return fmt.Errorf("%s is %d, not %d", count, got, replicas)
		}
	}
	return nil
}
