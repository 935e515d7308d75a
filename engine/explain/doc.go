// Package explain says how far one custom resource is, and why: its components with their objects, what
// each of them waits for, and below a workload that is not ready what Kubernetes says of its pods.
//
//	Reader.Read --status, inventory, live objects, pods--> Resource --Tree--> text
//
// It repeats what the operator has said in the status and decides nothing: neither a package nor CUE is
// needed, so it explains a resource as well if no operator runs. What it reads it reads with the
// permissions of the person who asks, and what that person may not read is said where it belongs. It
// never shows the content of an object.
package explain
