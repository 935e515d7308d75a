// Package controller connects the reconcile of custom resources to a cluster by
// controller-runtime: it watches resources and their objects, takes one step for
// each change, and keeps status, finalizer and events on the API server. It decides
// nothing about objects (packages reconcile, rollout and ownership do) and knows no kind
// of its own.
//
//	manager, err := controller.New(config, options)   // one controller a package
//	err = manager.Start(ctx)                          // blocks
//	err = manager.Swap(program)                       // another version of a package
package controller
