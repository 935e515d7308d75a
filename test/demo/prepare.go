package main

import (
	"context"
	"os"
	"strings"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/internal/binary"
	"operetta.dev/test/internal/screen"
)

// buildNiceness lets the preview, and whoever works on this machine, come before the compilers of the control plane.
const buildNiceness = 10

// prepare builds what is not built yet, and starts the control plane.
func (d *demo) prepare(ctx context.Context) error {
	if d.kubeconfig == "" && !controlplane.Built() {
		return d.prepareFirst(ctx)
	}
	return d.prepareAgain(ctx)
}

// prepareAgain builds operetta and starts the control plane at the same time: when both
// are built already, each waits more than it computes. The first that fails ends both.
func (d *demo) prepareAgain(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := make(chan struct{})
	go func() {
		defer close(started)
		if err := d.startControlPlane(ctx); err != nil {
			cancel(err)
		}
	}()
	if err := d.buildOperetta(ctx); err != nil {
		cancel(err)
	}
	<-started
	return context.Cause(ctx)
}

// prepareFirst is prepare where the control plane has to be built, which takes minutes. What shows something is built
// before it and not beside it, since each would take twice as long, and a preview of the sample plays meanwhile.
func (d *demo) prepareFirst(ctx context.Context) error {
	if err := d.buildOperetta(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	built := make(chan struct{})
	go func() {
		defer close(built)
		if err := d.buildControlPlane(ctx); err != nil {
			cancel(err)
		}
	}()
	d.preview(ctx, built)
	<-built
	d.screen.Keep()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return d.startControlPlane(ctx)
}

func (d *demo) buildOperetta(ctx context.Context) error {
	st := d.screen.Start("build operetta")
	err := binary.Build(ctx, st)
	st.End(err, binary.Path)
	return err
}

// startControlPlane starts a control plane, building what is missing, or looks at the cluster that is given.
func (d *demo) startControlPlane(ctx context.Context) (err error) {
	name := "start the control plane"
	if d.kubeconfig != "" {
		name = "use the cluster of " + d.kubeconfig
		if err := os.Setenv(controlplane.KubeconfigEnv, d.kubeconfig); err != nil {
			return err
		}
	}
	st := d.screen.Start(name)
	d.plane, err = controlplane.FromEnv(ctx, controlplane.Options{Progress: detailsOf(st)})
	if err != nil {
		st.End(err, "")
		return err
	}
	st.End(nil, d.plane.Kubeconfig())
	return nil
}

// buildControlPlane is a step of its own because it takes minutes the first time.
func (d *demo) buildControlPlane(ctx context.Context) error {
	st := d.screen.Start("build the control plane")
	_, err := controlplane.Builder{Out: detailsOf(st), Niceness: buildNiceness}.Build(ctx)
	st.End(err, "")
	return err
}

// detailsOf returns a writer that shows the progress of a build as the details of a step.
func detailsOf(st *screen.Step) *screen.Lines {
	return &screen.Lines{Say: func(line string) { st.Detail(strings.TrimPrefix(line, "controlplane: ")) }}
}
