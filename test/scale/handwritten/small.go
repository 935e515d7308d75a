package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// The kinds with small objects. A process serves one of them.
const (
	kindChain = "Chain"
	kindBatch = "Batch"
	// links is how many objects a Chain has.
	links = 10
)

// Small is a Chain or a Batch: ConfigMaps with a text.
type Small struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   SmallSpec   `json:"spec"`
	Status SmallStatus `json:"status,omitzero"`
}

// SmallSpec is what a user asks for. A Chain has no count.
type SmallSpec struct {
	Text  string `json:"text"`
	Count int    `json:"count,omitempty"`
}

// SmallStatus is what is reported.
type SmallStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// SmallList is a list of them.
type SmallList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Small `json:"items"`
}

// DeepCopy returns a copy that shares nothing.
func (s *Small) DeepCopy() *Small {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(s.Status.Conditions)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (s *Small) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *SmallList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]Small, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}

// smallReconciler makes the objects of Chains or of Batches.
type smallReconciler struct {
	client.Client

	kind   string
	resync time.Duration
}

// setup starts the controller with a manager.
func (r *smallReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&Small{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r)
}

// Reconcile takes a resource one step further.
func (r *smallReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &Small{}
	if err := r.Get(ctx, req.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if s.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	count := s.Spec.Count
	if r.kind == kindChain {
		count = links
	}
	text := s.Spec.Text
	for i := range count {
		desired := r.configMap(s, i, text)
		live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: *desired.Name}}
		if err := apply(ctx, r, s, desired, live); err != nil {
			return ctrl.Result{}, err
		}
		if r.kind == kindChain {
			text = desired.Data["text"] // what the API server has returned
		}
	}
	return ctrl.Result{RequeueAfter: r.resync}, r.report(ctx, s)
}

// configMap renders an object.
func (r *smallReconciler) configMap(s *Small, i int, text string) *corev1ac.ConfigMapApplyConfiguration {
	owner := metav1ac.OwnerReference().WithAPIVersion(groupVersion.String()).WithKind(r.kind).
		WithName(s.Name).WithUID(s.UID).WithController(true).WithBlockOwnerDeletion(true)
	return corev1ac.ConfigMap(fmt.Sprint(s.Name, "-", i), s.Namespace).WithLabels(map[string]string{nameLabel: managedName}).
		WithOwnerReferences(owner).WithData(map[string]string{"text": text})
}

// report writes the status if it has changed.
func (r *smallReconciler) report(ctx context.Context, s *Small) error {
	was := s.DeepCopy()
	s.Status.ObservedGeneration = s.Generation
	s.Status.Phase = setReady(&s.Status.Conditions, s.Generation, true, "")
	if equality.Semantic.DeepEqual(was.Status, s.Status) {
		return nil
	}
	return r.Status().Patch(ctx, s, client.MergeFrom(was))
}
