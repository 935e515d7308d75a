package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ui"
)

const uiLong = `Serve pages that show the custom resources of a cluster as they are, live: all of them with what is
not ready first, and for each one the tree of operetta explain and its picture.

It reads with your permissions and writes nothing. It listens on this machine only, and rejects
requests of web pages that use another host name. It runs until Ctrl-C.`

// uiFlags are the settings of "operetta ui".
type uiFlags struct {
	status statusFlags
	// operator is asked about the last reconciles of each resource whose page is open.
	operator operatorFlags
	port     uint16
}

func newUI(s streams) *cobra.Command {
	var f uiFlags
	cmd := &cobra.Command{
		Use:   "ui [KIND...]",
		Short: "Serve pages that show custom resources as they are",
		Long:  uiLong,
		Example: `  operetta ui

  operetta ui webapps -n team-a,team-b --port 8090`,
		ValidArgsFunction: f.status.cluster.completeKinds,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args) },
	}
	f.status.cluster.addFlags(cmd)
	f.operator.addFlags(cmd)
	f.status.addNamespaces(cmd)
	f.status.cluster.completeNamespaces(cmd)
	cmd.Flags().Uint16Var(&f.port, "port", 0, "port on 127.0.0.1; 0 is a free one")
	return cmd
}

// run serves the pages until the context ends. It errors if the cluster cannot be found, or the port is taken.
func (f uiFlags) run(ctx context.Context, s streams, words []string) error {
	if err := f.operator.check(); err != nil {
		return err
	}
	on, live, err := f.status.cluster.connect()
	if err != nil {
		return err
	}
	if _, err := f.status.list(ctx, s, words); err != nil {
		return err // before somebody opens a page that says so
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(f.port))))
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	hosts := uiHosts(port)
	quiet := s
	quiet.err = io.Discard // the notes were printed before
	server := &http.Server{
		Handler: ui.New(ui.Options{Source: clusterSource{f.status, quiet, words, explain.Reader{Cluster: live, Operator: f.operator.operator(on)}}, Hosts: hosts, Cluster: on.server()}),

		ReadHeaderTimeout: uiHeaderTimeout, IdleTimeout: uiIdleTimeout,
	}
	printLinef(s.out, "http://%s/ shows the custom resources of %s, until Ctrl-C", hosts[0], on.server())
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", hosts[0], err)
	}
	return nil
}

// defaultPort is the port of http: a browser leaves it out of the header Host.
const defaultPort = "80"

// uiHosts returns the hosts that pages are served as on a port.
func uiHosts(port string) []string {
	var out []string
	for _, name := range []string{"127.0.0.1", "localhost"} {
		out = append(out, net.JoinHostPort(name, port))
		if port == defaultPort {
			out = append(out, name)
		}
	}
	return out
}

// A clusterSource reads resources as operetta status and operetta explain do.
type clusterSource struct {
	status statusFlags
	quiet  streams
	words  []string
	reader explain.Reader
}

// List implements ui.Source.
func (c clusterSource) List(ctx context.Context) ([]explain.Resource, error) {
	return c.status.list(ctx, c.quiet, c.words)
}

// Explain implements ui.Source.
func (c clusterSource) Explain(ctx context.Context, ref object.Ref) (explain.Resource, error) {
	return c.reader.Read(ctx, ref)
}
