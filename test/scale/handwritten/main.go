// Command handwritten is an operator for WebApps as a team would write it in Go with
// controller-runtime: typed objects, a cached client, server-side apply, watches of what
// it owns, predicates, status conditions. It makes the objects that cue/webapp makes, so
// that both can be compared.
//
//	main ──> webapp (the reconciler) ──> objects (what should exist)
//	     ──> small (the same for     ──> apply (makes it so)
//	         Chains and Batches)
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// settings are the command line.
type settings struct {
	kubeconfig, metrics, kind, probePath string
	resync                               time.Duration
}

func main() {
	var s settings
	flags := flag.NewFlagSet("handwritten", flag.ExitOnError)
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "path of the kubeconfig file")
	flags.StringVar(&s.kind, "kind", kindWebApp, "the kind that is served: WebApp, Chain or Batch")
	flags.StringVar(&s.metrics, "metrics-bind-address", "0", "address for metrics; 0 means none")
	flags.StringVar(&s.probePath, "probe-path", "/", "path of the readiness probe, which another version of the operator changes")
	flags.DurationVar(&s.resync, "resync", 30*time.Second, "how often a resource is reconciled at rest")
	_ = flags.Parse(os.Args[1:]) // it exits on an error
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(s settings) error {
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig()))
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server has priorities and limits of its own
	scheme := runtime.NewScheme()
	addToScheme(scheme, s.kind)
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: s.metrics},
		Cache:   cacheOptions(),
	})
	if err != nil {
		return err
	}
	if err := s.setup(mgr); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// setup starts the controller of the kind.
func (s settings) setup(mgr ctrl.Manager) error {
	if s.kind == kindWebApp {
		return (&webappReconciler{Client: mgr.GetClient(), renderer: renderer{probePath: s.probePath}, resync: s.resync}).setup(mgr)
	}
	return (&smallReconciler{Client: mgr.GetClient(), kind: s.kind, resync: s.resync}).setup(mgr)
}

// cacheOptions keep only what the operator has made, without what it does not read.
func cacheOptions() cache.Options {
	o := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{}}
	own := k8slabels.SelectorFromSet(k8slabels.Set{nameLabel: managedName})
	for _, kind := range []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.ServiceAccount{}, &corev1.Service{}, &appsv1.Deployment{},
		&networkingv1.Ingress{}, &autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{},
	} {
		o.ByObject[kind] = cache.ByObject{Label: own}
	}
	return o
}
