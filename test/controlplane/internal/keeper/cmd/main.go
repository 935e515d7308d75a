// Command keeper serves one Keeper on stdin and stdout and cleans up when
// stdin ends. It is started by package controlplane, never by hand.
package main

import (
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"operetta.dev/test/controlplane/internal/keeper"
)

func init() { //nolint:gochecknoinits // only what locks before main begins gets the main thread
	// Children are started on the main thread, which lives as long as the process.
	runtime.LockOSThread()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
}

func run() error {
	// Writing to an owner that is gone must not end the keeper before it has cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)

	dir, err := os.MkdirTemp("", "operetta-controlplane-")
	if err != nil {
		return err
	}
	k := keeper.New(dir)
	server := rpc.NewServer()
	if err := server.RegisterName(keeper.Service, k); err != nil {
		return err
	}
	owner := &connection{Reader: os.Stdin, WriteCloser: os.Stdout, ended: make(chan struct{})}
	go server.ServeCodec(jsonrpc.NewServerCodec(owner))

	stop := make(chan struct{})
	go func() {
		defer close(stop)
		select {
		case <-owner.ended:
		case <-signals:
		}
	}()
	k.Work(stop)
	return k.Close()
}

// connection joins stdin and stdout, and tells when reading ends. The server
// itself cannot tell: it first waits for the calls that are still running.
type connection struct {
	io.Reader
	io.WriteCloser

	once  sync.Once
	ended chan struct{}
}

// Read implements io.Reader.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil {
		c.once.Do(func() { close(c.ended) })
	}
	return n, err
}
