// Command demo is what `make run` and `make demo` do: it builds operetta, starts a
// real control plane on this machine, runs the operators of this repository on it,
// applies a sample, and draws how the sample becomes Ready.
//
// It imports next to nothing, so that it is compiled in seconds on a machine that has
// nothing built yet, and can show how the long builds go. It sees the cluster as any
// user does, through kubectl, and the operator as any user does, through its command
// line, its log and the status that it writes.
//
//	main ──> demo (the steps) ──> screen (what a person sees)
//	                          ──> child, cluster (what it starts and asks)
//	                          ──> view (a dry run drawn as a tree; on a cluster, operetta explain draws)
//
// Whatever it started is gone when it ends, however it ends: the control plane
// belongs to a keeper that watches it, and the kernel kills the other children.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"operetta.dev/test/internal/screen"
)

// The exit codes.
const (
	exitOK          = 0
	exitNotReady    = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// options are the command line.
type options struct {
	// kubeconfig names a cluster to use; empty starts one.
	kubeconfig string
	// packages are the operators, sample the custom resource.
	packages, sample string
	// installed installs one operator of two processes instead, and ends after some steps.
	installed bool
	// once ends the demo as soon as the sample is Ready.
	once bool
	// timeout is how long the sample may take after the operator was started.
	timeout time.Duration
}

// The main goroutine keeps the main thread: the kernel ties a child's life to the
// thread that started it, and only this one lives as long as the process.
func init() { runtime.LockOSThread() } //nolint:gochecknoinits // only an init runs on the main thread for sure

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(exitOK)
	case err != nil:
		os.Exit(exitUsage) // the flag package has said why
	}
	exitWithParent()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The first signal ends everything in order, a second one at once.
	context.AfterFunc(ctx, stop)
	s := screen.New(os.Stdout)
	err = (&demo{options: o, screen: s, begin: time.Now()}).run(ctx)
	s.Close()
	os.Exit(exitCode(err))
}

// parse reads the command line.
func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "use this cluster instead of starting one")
	flags.StringVar(&o.packages, "packages", "./cue/...", "the operator packages")
	flags.StringVar(&o.sample, "sample", filepath.Join("config", "samples", "webapp.yaml"), "the custom resource to apply")
	flags.BoolVar(&o.installed, "installed", false, "install an operator of two processes with the rights of its roles, and show how it lives")
	flags.BoolVar(&o.once, "once", false, "end as soon as the sample is Ready, instead of on Ctrl-C")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long the sample may take to become Ready")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(flags.Output(), err)
		return o, err
	}
	return o, nil
}

// errInterrupted is a Ctrl-C before the sample was Ready. Later it is how `make run`
// ends, and no error.
var errInterrupted = errors.New("interrupted")

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	}
	return exitNotReady
}
