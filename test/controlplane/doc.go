// Package controlplane runs a complete, real Kubernetes control plane on one
// machine, for tests and for trying things out: etcd, kube-apiserver with RBAC,
// every controller of kube-controller-manager, kube-scheduler, and kwok, which
// simulates the nodes, so that pods become Ready without a container running.
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{})
//	...
//	defer cp.Stop()
//	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
//
// It is not a cluster: nothing executes, no Service has an address that answers,
// and there is no metrics server. Time in it is real time.
//
// The programs are built from Go modules the first time, which takes minutes
// (`go run ./cmd/controlplane build` shows how it goes), and are then found in
// the user's cache folder. Start then takes seconds. Everything listens on
// 127.0.0.1, on free ports, and keeps its files in one temporary folder; so any
// number of control planes run side by side, and Stop leaves nothing behind.
//
// The processes belong to a keeper, a process of its own that ends them all and
// removes the folder as soon as the program that called Start ends, even if that
// was killed:
//
//	your test ──pipe──▶ keeper ──▶ etcd, kube-apiserver, kube-controller-manager,
//	                               kube-scheduler, kwok
//
// The usual order of calls is Start, then Kubeconfig or KubeconfigFor (another
// user, for the role under test), then, in tests of faults, StopPart and
// StartPart, then Stop. The package imports only the standard library and what runs
// the go command, and the modules that it builds are no dependencies of the program
// that imports it.
//
// It works where the Go command and Unix processes are: Linux and macOS.
package controlplane
