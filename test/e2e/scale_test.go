package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestScalingGoesThroughPhaseScalingUpDownAndToZero(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.expectReady("shop")
	for _, replicas := range []int64{5, 2, 0, 1} {
		phases := s.watchPhases()
		began := time.Now()
		s.patch(cr, spec(map[string]any{"replicas": replicas}))
		got := s.expectReady("shop")
		took := since(began)
		if err := rolledOut(s.get("Deployment", "shop"), "nginx:1.25", replicas); err != nil {
			t.Errorf("to %d replicas: Ready, but %v", replicas, err)
		}
		if n := field(got, "status", "availableReplicas"); n != replicas {
			t.Errorf("to %d replicas: status.availableReplicas is %v", replicas, n)
		}
		seen := phases.until("Ready")
		t.Logf("to %d replicas: ready after %s, phases %v", replicas, took, seen)
		if !slices.Contains(seen, "Scaling") || slices.ContainsFunc(seen, func(p string) bool { return p != "Scaling" && p != "Ready" }) {
			t.Errorf("to %d replicas: phases are %v, wanted Scaling and then Ready", replicas, seen)
		}
	}
}

func TestKubectlScaleIsFollowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	s.create(s.webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.expectReady("shop")
	t.Log(s.kubectl("scale", "webapp", "shop", "--replicas=5"))
	s.kubectl("wait", "--for=condition=Ready", "webapp/shop", "--timeout=60s")
	if err := rolledOut(s.get("Deployment", "shop"), "nginx:1.25", 5); err != nil {
		t.Errorf("kubectl wait returned, but %v", err)
	}
}

// phases are the phases that one WebApp goes through.
type phases struct {
	s    *site
	mu   sync.Mutex
	seen []string
}

// watchPhases records the phases of the site's one WebApp, without the one that it
// has already.
func (s *site) watchPhases() *phases {
	s.t.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersions["WebApp"], "WebAppList"))
	if err := world.admin.List(s.t.Context(), l, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	w, err := world.admin.Watch(s.t.Context(), l, client.InNamespace(s.namespace), &client.ListOptions{Raw: listFrom(l.GetResourceVersion())})
	if err != nil {
		s.t.Fatal(err)
	}
	p := &phases{s: s}
	go func() {
		defer w.Stop()
		for e := range w.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				return
			}
			phase, _ := field(u, "status", "phase").(string)
			// The old status stands beside the new spec until the operator has seen it.
			if field(u, "status", "observedGeneration") == u.GetGeneration() {
				p.add(phase)
			}
		}
	}()
	return p
}

func (p *phases) add(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) == 0 || p.seen[len(p.seen)-1] != phase {
		p.seen = append(p.seen, phase)
	}
}

// until waits for a phase and returns those up to it.
func (p *phases) until(phase string) []string {
	p.s.t.Helper()
	var seen []string
	eventually(p.s.t, "phase "+phase, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		seen = slices.Clone(p.seen)
		if len(seen) == 0 || seen[len(seen)-1] != phase {
			return errNotYet
		}
		return nil
	})
	return seen
}
