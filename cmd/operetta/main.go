// Command operetta runs Kubernetes operators that are written in CUE, and helps
// their authors: it checks packages, renders custom resources without a cluster,
// and generates CustomResourceDefinitions.
//
// It is a thin shell over the packages below engine: each command is one file that
// reads flags and files, calls the engine, and prints. Nothing here decides.
//
// To add a command, write a constructor like newVersion in a file of its own and
// name it in newRoot.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// streams are what a command reads and writes, so that a test can be its terminal.
type streams struct {
	in       io.Reader
	out, err io.Writer
	// program is the path by which the binary was called, or "".
	program string
	// patience is how long a command works before it shows on a terminal how far it is.
	patience time.Duration
}

func main() { os.Exit(runProcess(progressAfter)) }

// runProcess runs the command that this process was started for, and returns its exit code. A command shows how far it
// is once it has worked for as long as patience.
func runProcess(patience time.Duration) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the work in order, the second ends the process.
	context.AfterFunc(ctx, stop)
	// Libraries log errors that they return as well. Commands that log, log those of libraries.
	klog.SetLogger(logr.Discard())
	return run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, program: os.Args[0], patience: patience})
}

// run is the whole command: it returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	s.out, s.err = escapingWriter{s.out}, escapingWriter{s.err}
	root := newRoot(s)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return reportError(cmd, s.err, err)
}
