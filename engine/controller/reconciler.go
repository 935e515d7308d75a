package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	own       *ownWriteFilter
}

// step takes a resource one step further, and repeats that while a step has written
// something new: a write may unblock another component, and its watch event is filtered.
// The loop ends, as it counts only the first few contents of each object as new; a package
// that writes one object again and again returns the worker after each step.
func (r *reconciler) step(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	r.own.beginReconcile(key)
	defer r.own.endReconcile(key)
	for {
		again, err := r.lifecycle.Step(ctx, key, timed{r.program.Load(), stepOf(ctx)})
		if err != nil {
			return again, err
		}
		switch r.own.sinceLast(key) {
		case noWrite:
			return again, nil
		case rewritten:
			return firstRetry, nil
		case advanced:
		}
	}
}

// store keeps custom resources on the API server.
type store struct {
	kind   schema.GroupVersionKind
	client client.Client
	// direct reads from the API server what a cache has not kept, and wholes remember it.
	direct client.Reader
	wholes *wholes
}

var _ reconcile.Store = (*store)(nil)

// store returns the store of a kind, by a client that reads from a cache.
func (m *Manager) store(kind schema.GroupVersionKind, from client.Client) *store {
	return &store{kind: kind, client: from, direct: m.children.direct, wholes: m.children.wholes}
}

// Get implements reconcile.Store.
func (s *store) Get(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	cr, err := s.get(ctx, s.client, key)
	if err != nil {
		return nil, err
	}
	return s.wholes.get(ctx, cr, func(ctx context.Context, _ cluster.Ref) (*unstructured.Unstructured, error) {
		return s.get(ctx, s.direct, key)
	})
}

func (s *store) get(ctx context.Context, from client.Reader, key types.NamespacedName) (*unstructured.Unstructured, error) {
	cr := object(s.kind)
	err := from.Get(ctx, key, cr)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return cr, err
}

// ApplyStatus implements reconcile.Store.
func (s *store) ApplyStatus(ctx context.Context, resource *unstructured.Unstructured) error {
	err := s.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(resource), client.FieldOwner(cluster.FieldManager), client.ForceOwnership)
	return client.IgnoreNotFound(err)
}

// finalizing is the name under which the engine owns the finalizers of resources. It is
// not that of the manifests it applies: a resource may be an object of another one, and
// to apply nothing but finalizers would take its spec away.
const finalizing = cluster.FieldManager + "-finalizer"

// ApplyFinalizers implements reconcile.Store. An apply with a UID never creates.
func (s *store) ApplyFinalizers(ctx context.Context, resource *unstructured.Unstructured) error {
	if len(resource.GetFinalizers()) == 0 {
		return s.dropFinalizer(ctx, resource)
	}
	return s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(resource), client.FieldOwner(finalizing), client.ForceOwnership)
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

// errNotServed names a package without a controller.
func errNotServed(p *program.Program) error {
	return fmt.Errorf("package %s serves %s, which this process does not; start it anew", p.Name(), p.GroupVersionKind().GroupKind())
}
