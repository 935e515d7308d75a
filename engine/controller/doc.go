// Package controller connects the lifecycle of custom resources to a cluster by
// controller-runtime: it watches resources and their objects, takes one step for
// each change, and keeps status, finalizer and events on the API server. It decides
// nothing about objects (packages lifecycle, rollout and plan do) and knows no kind
// of its own.
//
//	manager, err := controller.New(config, options)   // one controller a package
//	err = manager.Start(ctx)                          // blocks
//	err = manager.Swap(program)                       // another version of a package
package controller
