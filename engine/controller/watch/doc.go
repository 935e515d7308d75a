// Package watch reads the objects of packages from caches, and enqueues the custom resources that a
// change concerns. Package controller creates its types, and decides what a queue does with a request.
//
//   - Caches has the objects that packages own, for all controllers of a manager.
//   - A Cluster is what one controller reads of them and writes. It watches a kind from the first read.
//   - Inputs watches what the resources of a package read and do not own.
//   - Patches watches Patches, for every controller.
//
// No watch holds a worker forever: readers of a kind that cannot be listed get an error after a
// deadline, and are enqueued once the kind can be listed.
package watch
