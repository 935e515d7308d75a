// Command controlplane builds and runs a complete Kubernetes control plane on
// this machine. All it does is in package controlplane; this is for people and
// scripts. It exits with 0 on success, 1 on failure and 2 on wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"operetta.dev/test/controlplane"
)

const usage = `controlplane runs a real Kubernetes control plane on this machine: etcd,
kube-apiserver with RBAC, all controllers, the scheduler, and simulated nodes
whose pods become Ready without a container running. No cluster, no container
runtime and no root are needed; your own kubeconfig is not touched.

Usage:
  controlplane build                     build the programs into the cache
  controlplane up [--audit] [--nodes N]  start one; Ctrl-C ends it
  controlplane help                      show this

The first build takes minutes, every later start seconds.

Try it:
  controlplane up
  # in another terminal, the line that up has printed, and then
  kubectl create deployment web --image=any/name --replicas=3
  kubectl get pods --watch

Start as many as you like; each has ports and a folder of its own, and leaves
nothing behind, however it ends.

Environment:
  ` + controlplane.AssetsEnv + `  a folder whose etcd, kube-apiserver, kubectl are used
                      instead of building them
  XDG_CACHE_HOME      where the cache is, in operetta/controlplane

Exit codes: 0 success, 1 failure, 2 wrong usage.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without what belongs to the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	var err error
	switch args[0] {
	case "build":
		err = build(ctx, args[1:], stdout, stderr)
	case "up":
		err = up(ctx, args[1:], stdout, stderr)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
	default:
		err = misuse("there is no command %q", args[0])
	}
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "controlplane: %v; see controlplane help\n", err)
		return 2
	}
	fmt.Fprintf(stderr, "controlplane: %v\n", err)
	return 1
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func misuse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// parse reads the flags of a command that takes nothing else.
func parse(flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return usageError{err}
	case flags.NArg() > 0:
		return misuse("%s takes no argument %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

func build(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if err := parse(flag.NewFlagSet("build", flag.ContinueOnError), args); err != nil {
		return err
	}
	b, err := controlplane.Build(ctx, stderr)
	if err != nil {
		return err
	}
	for _, path := range []string{b.Etcd, b.APIServer, b.ControllerManager, b.Scheduler, b.Kwok, b.Kubectl} {
		fmt.Fprintln(stdout, path)
	}
	return nil
}

func up(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	audit := flags.Bool("audit", false, "record every request")
	nodes := flags.Int("nodes", 1, "simulated nodes")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *nodes < 1 {
		return misuse("--nodes %d: it needs one node at least", *nodes)
	}
	begin := time.Now()
	c, err := controlplane.Start(ctx, controlplane.Options{Audit: *audit, Nodes: *nodes, Progress: stderr})
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "# ready after %s; Ctrl-C ends it\n", time.Since(begin).Round(100*time.Millisecond))
	fmt.Fprintf(stderr, "# kubectl of its version: %s\n", c.Kubectl())
	fmt.Fprintf(stderr, "# logs: %s/*.log\n", c.Dir())
	if *audit {
		fmt.Fprintf(stderr, "# every request: %s\n", c.AuditLog())
	}
	fmt.Fprintf(stdout, "export KUBECONFIG=%s\n", c.Kubeconfig())
	if err := c.Wait(ctx); ctx.Err() == nil {
		return errors.Join(err, c.Stop())
	}
	return c.Stop()
}
