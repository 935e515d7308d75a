// Package controller connects rollouts to a cluster by controller-runtime: it
// watches custom resources and their objects, runs one rollout for each change,
// and writes status, finalizer and events. It decides nothing about objects
// (packages rollout and plan do) and knows no kind of its own.
//
//	manager, err := controller.New(config, options)   // one controller a package
//	err = manager.Start(ctx)                          // blocks
//	err = manager.Swap(program)                       // another version of a package
//
// A reconcile is a list of phases: fetch, then teardown of a deleted resource, or
// a rollout and the report of what came of it.
package controller
