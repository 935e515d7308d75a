// Command controlplane builds and runs a local Kubernetes control plane.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"operetta.dev/test/controlplane"
)

func main() {
	if err := up(); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func up() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	fmt.Println("export KUBECONFIG=" + c.Kubeconfig())
	<-ctx.Done()
	return c.Stop()
}
