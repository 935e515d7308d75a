package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconciler reconciles the custom resources of one package, in the version that
// is current when a reconcile begins.
type reconciler struct {
	program   atomic.Pointer[program.Memo]
	lifecycle *reconcile.Reconciler
}

// reconcile reconciles a resource once. A write may unblock another component: the watch event
// of the written object reconciles the resource again.
func (r *reconciler) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	return r.lifecycle.Step(ctx, key, timedPackage{r.program.Load(), runningOf(ctx)})
}

// resources returns the cluster that has custom resources, by a client that reads from a
// cache.
func (m *Manager) resources(from client.Client) *cluster.Live {
	return &cluster.Live{Client: from, Direct: m.caches.direct, ReadFull: m.caches.large.get}
}

// recorder records events on the API server.
type recorder struct{ events events.EventRecorder }

var _ reconcile.Recorder = recorder{}

// Record implements reconcile.Recorder.
func (r recorder) Record(resource *unstructured.Unstructured, e rollout.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.events.Eventf(resource, nil, kind, e.Reason, "Reconcile", "%s", e.Message)
}

// remembered is how many resources of a package keep their last evaluation. One of
// eight objects takes about 30 KiB.
const remembered = 1000

// use makes the next reconciles use a version of the package.
func (r *reconciler) use(p *program.Program) {
	r.program.Store(program.NewMemo(p, remembered))
}

// errNoController names a package without a controller.
func errNoController(p *program.Program) error {
	return fmt.Errorf("package %s serves %s, which this process does not; start it anew", p.Name(), p.GroupVersionKind().GroupKind())
}
