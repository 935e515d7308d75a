package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestScalingGoesThroughPhaseScalingUpDownAndToZero(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.ExpectReady("shop")
	for _, replicas := range []int64{5, 2, 0, 1} {
		phases := s.watchPhases()
		began := time.Now()
		s.Patch(cr, harness.Spec(map[string]any{"replicas": replicas}))
		got := s.ExpectReady("shop")
		took := harness.Elapsed(began)
		if err := checkRolledOut(s.Get("Deployment", "shop"), "nginx:1.25", replicas); err != nil {
			t.Errorf("to %d replicas: Ready, but %v", replicas, err)
		}
		if n := harness.Field(got, "status", "availableReplicas"); n != replicas {
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
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.Webapp("shop", map[string]any{"image": "nginx:1.25"}))
	s.ExpectReady("shop")
	t.Log(s.Kubectl("scale", "webapp", "shop", "--replicas=5"))
	s.Kubectl("wait", "--for=condition=Ready", "webapp/shop", "--timeout=60s")
	if err := checkRolledOut(s.Get("Deployment", "shop"), "nginx:1.25", 5); err != nil {
		t.Errorf("kubectl wait returned, but %v", err)
	}
}

// phases are the phases of one WebApp, in order.
type phases struct {
	s    *env
	mu   sync.Mutex
	seen []string
}

// watchPhases records the phases of the only WebApp of the test, without its present one.
func (s *env) watchPhases() *phases {
	s.T.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(harness.APIVersions["WebApp"], "WebAppList"))
	if err := harness.Suite.Admin.List(s.T.Context(), l, client.InNamespace(s.Namespace)); err != nil {
		s.T.Fatal(err)
	}
	w, err := harness.Suite.Admin.Watch(s.T.Context(), l, client.InNamespace(s.Namespace), &client.ListOptions{Raw: harness.WatchFrom(l.GetResourceVersion())})
	if err != nil {
		s.T.Fatal(err)
	}
	p := &phases{s: s}
	go func() {
		defer w.Stop()
		for e := range w.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				return
			}
			phase, _ := harness.Field(u, "status", "phase").(string)
			// Until the operator has seen the new spec, the status is the old one.
			if harness.Field(u, "status", "observedGeneration") == u.GetGeneration() {
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

// until waits for a phase, and returns the phases up to it.
func (p *phases) until(phase string) []string {
	p.s.T.Helper()
	var seen []string
	harness.Eventually(p.s.T, "phase "+phase, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		seen = slices.Clone(p.seen)
		if len(seen) == 0 || seen[len(seen)-1] != phase {
			return harness.ErrNotYet
		}
		return nil
	})
	return seen
}
