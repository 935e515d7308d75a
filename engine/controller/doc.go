// Package controller connects the reconcile of custom resources to a cluster by
// controller-runtime: it watches resources and their objects, reconciles a resource for
// each change, and writes status, finalizer and events to the API server. It decides
// nothing about objects (packages reconcile, rollout and ownership do) and knows no kind
// of its own.
//
//	manager, err := controller.New(config, options)
//	err = manager.Serve(program)            // one controller for each package
//	err = manager.Start(ctx)                // blocks
//	err = manager.Swap(ctx, was, program)   // another version of a package
//
// Between an event and a reconcile, a request passes:
//
//	watch.Cluster, Inputs, Patches   which resources the object of an event concerns
//	eventRateLimits                  how often others may have a resource reconciled
//	fairQueue                        which requests get a worker: slow and hung reconciles must not take all
//	longReconciles                   which reconciles have taken long, and leave their worker to others
//	backoffReconciler                when a failed request is tried again
//
// Where to look:
//
//	package_controller.go   serving a package
//	swap.go                 swapping a package for another version
//	broken_packages.go      what resources of a broken package say
//	planner.go              what another version would do, before it is served
//	package_missing.go      teardown of resources whose package is not loaded
//	duplicate_operator.go   two processes that serve one kind
//	watch                   caches and watches of objects, inputs and Patches
package controller
