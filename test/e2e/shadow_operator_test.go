package e2e

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"operetta.dev/test/harness"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// otherName is how the other operator calls itself; the API server notes it as a field manager.
const otherName = "other-operator"

// An otherOperator is an operator as a team would write it with kubebuilder: it creates and updates the objects of a
// Thing, with the Thing as their controller, and reports in the status.
type otherOperator struct {
	client.Client

	kind schema.GroupVersionKind
}

// startOther starts the other operator for a package's kind in the namespace of the test. The function ends it.
func (s *env) startOther(p *testPackage) (stop func()) {
	s.T.Helper()
	kubeconfig, err := harness.Suite.ControlPlane.KubeconfigFor("other:"+s.Namespace, "system:masters")
	if err != nil {
		s.T.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		s.T.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.Namespace: {}}},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		s.T.Fatal(err)
	}
	thing := p.Thing(s.Env, "", nil)
	skip := true // several tests have such an operator
	err = ctrl.NewControllerManagedBy(mgr).Named(p.Name).For(thing).
		Owns(harness.Object("apps/v1", "Deployment", "", "")).Owns(harness.Object("v1", "ConfigMap", "", "")).
		WithOptions(controller.Options{SkipNameValidation: &skip}).
		Complete(&otherOperator{client.WithFieldOwner(mgr.GetClient(), otherName), thing.GroupVersionKind()})
	if err != nil {
		s.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			s.T.Errorf("the other operator: %v", err)
		}
		ended <- nil // it may be stopped twice
	}
	s.T.Cleanup(stop)
	return stop
}

// Reconcile makes the objects of a Thing.
func (o *otherOperator) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	thing := &unstructured.Unstructured{}
	thing.SetGroupVersionKind(o.kind)
	if err := o.Get(ctx, r.NamespacedName, thing); err != nil || thing.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	image, _, _ := unstructured.NestedString(thing.Object, "spec", "image")
	name := map[string]any{"app": r.Name}
	if err := o.make(ctx, thing, harness.Object("v1", "ConfigMap", r.Namespace, r.Name+"-config"), map[string]any{"data": map[string]any{"mode": "fast"}}); err != nil {
		return reconcile.Result{}, err
	}
	if err := o.make(ctx, thing, harness.Object("v1", "Secret", r.Namespace, r.Name+"-token"), map[string]any{"data": map[string]any{"token": "Y2FuYXJ5LW9mLXRoZS1vdGhlcg=="}}); err != nil {
		return reconcile.Result{}, err
	}
	deployment := harness.Object("apps/v1", "Deployment", r.Namespace, r.Name)
	if err := o.make(ctx, thing, deployment, map[string]any{"spec": map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": name},
		"template": map[string]any{"metadata": map[string]any{"labels": name}, "spec": map[string]any{"containers": []any{map[string]any{
			"name": "web", "image": image, "resources": map[string]any{"requests": map[string]any{"cpu": "1"}},
		}}}},
	}}); err != nil {
		return reconcile.Result{}, err
	}
	if err := o.make(ctx, thing, harness.Object("v1", "Service", r.Namespace, r.Name), map[string]any{"spec": map[string]any{
		"selector": name, "ports": []any{map[string]any{"name": "http", "port": int64(80)}},
	}}); err != nil {
		return reconcile.Result{}, err
	}
	// What is behind the Deployment needs its UID.
	return reconcile.Result{}, o.make(ctx, thing, harness.Object("v1", "ConfigMap", r.Namespace, r.Name+"-ref"), map[string]any{"data": map[string]any{"uid": string(deployment.GetUID())}})
}

// make creates an object, or gives it the fields that it should have. It leaves out what it finds, as operators do
// that do not compare with the defaults of the API server.
func (o *otherOperator) make(ctx context.Context, owner, object *unstructured.Unstructured, content map[string]any) error {
	_, err := controllerutil.CreateOrUpdate(ctx, o, object, func() error {
		if object.GetResourceVersion() == "" {
			maps.Copy(object.Object, content)
		}
		setImage(object, content)
		return controllerutil.SetControllerReference(owner, object, o.Scheme())
	})
	return err
}

// setImage gives the container of a Deployment another image.
func setImage(object *unstructured.Unstructured, content map[string]any) {
	path := []string{"spec", "template", "spec", "containers"}
	wanted, found, _ := unstructured.NestedSlice(content, path...)
	live, _, _ := unstructured.NestedSlice(object.Object, path...)
	if !found || len(live) == 0 {
		return
	}
	live[0].(map[string]any)["image"] = wanted[0].(map[string]any)["image"]
	_ = unstructured.SetNestedSlice(object.Object, live, path...)
}
