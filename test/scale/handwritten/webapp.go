package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// concurrency is how many resources are reconciled at the same time: the default of operetta run.
const concurrency = 4

// webappReconciler makes the objects of WebApps.
type webappReconciler struct {
	client.Client

	renderer renderer
	resync   time.Duration
}

// setup starts the controller with a manager.
func (r *webappReconciler) setup(mgr ctrl.Manager) error {
	// The status of these kinds says nothing that is waited for.
	changed := builder.WithPredicates(predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return ctrl.NewControllerManagedBy(mgr).
		For(&WebApp{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&corev1.Service{}).
		Owns(&appsv1.Deployment{}).
		Owns(&networkingv1.Ingress{}, changed).
		Owns(&autoscalingv2.HorizontalPodAutoscaler{}, changed).
		Owns(&policyv1.PodDisruptionBudget{}, changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r)
}

// Reconcile takes a WebApp one step further.
func (r *webappReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &WebApp{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if w.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	deployment, err := r.applyServers(ctx, w)
	if err != nil {
		return ctrl.Result{}, err
	}
	ready := rolledOut(deployment, w)
	if err := r.applyAround(ctx, w, ready); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.resync}, r.report(ctx, w, deployment, ready)
}

// applyServers applies the configuration and then the servers that read it, and returns the Deployment.
func (r *webappReconciler) applyServers(ctx context.Context, w *WebApp) (*appsv1.Deployment, error) {
	name := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}
	if err := apply(ctx, r, w, r.renderer.configMap(w), &corev1.ConfigMap{ObjectMeta: name}); err != nil {
		return nil, err
	}
	if err := apply(ctx, r, w, r.renderer.secret(w), &corev1.Secret{ObjectMeta: name}); err != nil {
		return nil, err
	}
	if err := apply(ctx, r, w, r.renderer.serviceAccount(w), &corev1.ServiceAccount{ObjectMeta: name}); err != nil {
		return nil, err
	}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	if err := apply(ctx, r, w, r.renderer.deployment(w), deployment); err != nil {
		return nil, err
	}
	return deployment, apply(ctx, r, w, r.renderer.service(w), &corev1.Service{ObjectMeta: name})
}

// applyAround applies what is around the servers. The Ingress opens when they serve.
func (r *webappReconciler) applyAround(ctx context.Context, w *WebApp, ready bool) error {
	name := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}
	if err := apply(ctx, r, w, r.renderer.disruptionBudget(w), &policyv1.PodDisruptionBudget{ObjectMeta: name}); err != nil {
		return err
	}
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: name}
	if !w.Spec.Autoscaling.Enabled {
		if err := remove(ctx, r, w, autoscaler); err != nil {
			return err
		}
	} else if err := apply(ctx, r, w, r.renderer.autoscaler(w), autoscaler); err != nil {
		return err
	}
	ingress := &networkingv1.Ingress{ObjectMeta: name}
	switch {
	case !w.Spec.Ingress.Enabled:
		return remove(ctx, r, w, ingress)
	case ready:
		return apply(ctx, r, w, r.renderer.ingress(w), ingress)
	}
	return nil
}

// rolledOut reports whether enough servers with the current configuration serve.
func rolledOut(d *appsv1.Deployment, w *WebApp) bool {
	wanted := w.Spec.Replicas
	if w.Spec.Autoscaling.Enabled {
		wanted = w.Spec.Autoscaling.MinReplicas
	}
	s := d.Status
	return d.Generation > 0 && s.ObservedGeneration == d.Generation &&
		s.UpdatedReplicas == s.Replicas && s.AvailableReplicas == s.Replicas && s.AvailableReplicas >= wanted &&
		d.Spec.Template.Annotations[configAnnotation] == checksum(w)
}

// report writes the status if it has changed.
func (r *webappReconciler) report(ctx context.Context, w *WebApp, d *appsv1.Deployment, ready bool) error {
	was := w.DeepCopy()
	w.Status.ObservedGeneration = w.Generation
	w.Status.AvailableReplicas = d.Status.AvailableReplicas
	w.Status.URL = fmt.Sprintf("http://%s.%s.svc:%d", w.Name, w.Namespace, w.Spec.Port)
	w.Status.Phase = setReady(&w.Status.Conditions, w.Generation, ready, "the Deployment is rolling out")
	if equality.Semantic.DeepEqual(was.Status, w.Status) {
		return nil
	}
	return r.Status().Patch(ctx, w, client.MergeFrom(was))
}

// setReady sets the condition Ready, and returns the phase.
func setReady(conditions *[]metav1.Condition, generation int64, ready bool, awaited string) string {
	c := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", Message: awaited, ObservedGeneration: generation}
	phase := "Deploying"
	if ready {
		c.Status, c.Reason, c.Message, phase = metav1.ConditionTrue, "Ready", "", "Ready"
	}
	meta.SetStatusCondition(conditions, c)
	return phase
}
