// Command registry is an OCI registry in memory, for the demo: it listens on a free port of 127.0.0.1, prints its
// address, and is gone with all that it holds when it is told to end. Its credentials are in the environment, where
// no other user of the machine reads them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"operetta.dev/test/registrytest/memory"
)

// The variables with the credentials.
const (
	userEnv     = "REGISTRY_USER"
	passwordEnv = "REGISTRY_PASSWORD"
)

// headerTimeout is how long a client may take to send what it asks for.
const headerTimeout = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Getenv(userEnv), os.Getenv(passwordEnv)); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and so does what is deferred
	}
}

// run serves until the context ends.
func run(ctx context.Context, out io.Writer, user, password string) error {
	if user == "" || password == "" {
		return fmt.Errorf("set %s and %s: it serves nobody without credentials", userEnv, passwordEnv)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: memory.Handler(ocimem.New(), user, password), ReadHeaderTimeout: headerTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintln(out, listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
