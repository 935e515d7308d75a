// Package gitops proves that tools which apply custom resources from a repository see how far they are: Argo CD by
// the script of package install, and Flux, like everything that waits by kstatus, without one. It has only tests.
package gitops
