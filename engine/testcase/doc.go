// Package testcase runs the tests of an operator package: CUE files beside it that say what the operator
// decides about a custom resource, in some state of the cluster.
//
//	tests: "the least that a user may write": {
//		given: cr: spec: image: "nginx"
//		want: objects: web: deployment: spec: replicas: 3
//	}
//
// A test may go on in steps, in a cluster in memory in which the operator acts, and Explore takes these steps once more under
// crashes, lost responses and other orders. Run also says what the tests have covered, and Update writes what is decided into
// their files' text.
//
// It decides nothing itself: package render makes the decision as a reconcile would, and this package compares
// it with what the test wants. Only what a test writes is compared. A value has to be the same, and a constraint has to hold.
//
//	p, tests, err := testcase.Load(withTests)
//	results, covered, err := testcase.Run(ctx, p, tests)
//	for _, r := range results { ... } // r.Differences
//
// It neither finds the files (package source) nor prints results (the command does).
package testcase
