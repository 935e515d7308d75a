package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/internal/binary"
	"operetta.dev/test/internal/screen"
)

// A demo is one run of the command.
type demo struct {
	options
	screen *screen.Screen
	begin  time.Time

	plane    *controlplane.ControlPlane
	operator *child
	proxy    *child
	// processes are those of an installed operator, of which operator is one that has to live.
	processes []*process
	cluster   *cluster
	sampled   resource
	// drawn is the version of the resource in the picture, and drawnAt when it was drawn.
	drawn   string
	drawnAt time.Time
	// registry holds a package, and greeting is a resource of it.
	registry ociRegistry
	greeting resource
	stopping atomic.Bool
}

// How often the cluster is asked: often, but rarely enough to be polite when nothing is
// awaited from somebody's cluster.
const (
	eager = 250 * time.Millisecond
	calm  = time.Second
	// redraw is how often what has not changed is explained again, each time by a process and a request for each object.
	redraw = 2 * time.Second
)

// run runs the steps, and stops everything that it has started.
func (d *demo) run(ctx context.Context) error {
	err := d.steps(ctx)
	if ctx.Err() != nil && !errors.Is(err, errInterruptedByUser) {
		err = errInterrupted
	}
	if errors.Is(err, errInterruptedByUser) {
		err = nil
	}
	d.screen.Keep()
	switch {
	case errors.Is(err, errInterrupted):
		d.screen.Print("", "interrupted")
	case err != nil:
		d.screen.Print("", d.screen.Ink().Bad("failed: ")+err.Error())
	}
	return errors.Join(err, d.stop())
}

// errInterruptedByUser ends a demo that was interrupted after its last step.
var errInterruptedByUser = errors.New("stayed until it was interrupted")

func (d *demo) steps(ctx context.Context) error {
	steps := []func(context.Context) error{d.prepare, d.startOperator, d.applySample, d.waitReady}
	if d.installed {
		steps = d.installedSteps()
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if d.installed {
		d.screen.Keep()
		d.screen.Print("", d.screen.Ink().Good("Done after "+screen.Seconds(time.Since(d.begin))))
		return nil
	}
	if d.once {
		d.screen.Keep()
		d.screen.Print("", d.screen.Ink().Good("Ready after "+screen.Seconds(time.Since(d.begin))))
		return nil
	}
	d.screen.Print(d.advice()...)
	return d.runUntilInterrupted(ctx)
}

// startOperator starts the operators and waits until the API server knows the kind of
// the sample.
func (d *demo) startOperator(ctx context.Context) error {
	st := d.screen.Start("start the operators")
	err := d.serve(ctx)
	st.End(err, "operetta run "+d.packages)
	return err
}

func (d *demo) serve(ctx context.Context) (err error) {
	if d.operator, err = startChild(d.logOf("operetta"), binary.Path, "run", d.packages, "--kubeconfig", d.plane.Kubeconfig()); err != nil {
		return err
	}
	d.cluster = connect(d.plane.Kubectl(), d.plane.Kubeconfig(), d.plane.Dir())
	if d.proxy, err = startChild(func(string) {}, d.plane.Kubectl(), d.cluster.proxy()...); err != nil {
		return err
	}
	kind, err := d.cluster.sampleKind(ctx, d.sample)
	if err != nil {
		return err
	}
	return d.poll(ctx, d.timeout, "the operator to install the type of "+kind.kind, func(ctx context.Context) (bool, error) {
		_, err := d.cluster.kind(ctx, kind)
		return err == nil, err
	})
}

func (d *demo) applySample(ctx context.Context) (err error) {
	st := d.screen.Start("apply the sample")
	d.sampled, err = d.cluster.apply(ctx, d.sample)
	st.End(err, "kubectl apply -f "+d.sample)
	return err
}

// waitReady draws the sample until it is Ready.
func (d *demo) waitReady(ctx context.Context) error {
	st := d.screen.Start("wait until " + d.subject() + " is Ready")
	err := d.drawUntilReady(ctx, d.sampled)
	st.End(err, "")
	return err
}

// drawUntilReady draws a resource until it is Ready.
func (d *demo) drawUntilReady(ctx context.Context, r resource) error {
	d.drawn = "" // the picture of before may have been kept
	return d.poll(ctx, d.timeout, r.subject()+" to become Ready", func(ctx context.Context) (bool, error) {
		now, err := d.draw(ctx, r)
		return err == nil && now.ready(), err
	})
}

// runUntilInterrupted draws the sample until the demo is interrupted.
func (d *demo) runUntilInterrupted(ctx context.Context) error {
	pace := eager
	if d.kubeconfig != "" {
		pace = calm
	}
	every := time.NewTicker(pace)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return errInterruptedByUser
		case <-d.operator.done:
			return d.operator.died()
		case <-every.C:
		}
		// An API server that is away for a moment leaves the picture as it is.
		_, _ = d.draw(ctx, d.sampled)
		if err := d.checkControlPlane(); err != nil {
			return err
		}
	}
}

// draw reads a resource, and shows what operetta explain says of it: whenever it has changed, and on a terminal also
// after a while, for what changes without it, such as ages.
func (d *demo) draw(ctx context.Context, r resource) (resource, error) {
	var now resource
	err := d.cluster.read(ctx, kindKey{r.APIVersion, r.Kind}, r.Metadata.Namespace, r.Metadata.Name, &now)
	if errors.Is(err, errAbsent) {
		ink := d.screen.Ink()
		d.screen.Show([]string{ink.Bold(r.subject()) + "  " + ink.Warn("does not exist")})
		d.drawn = ""
		return resource{}, nil
	}
	version := now.Metadata.UID + " " + now.Metadata.ResourceVersion
	if err != nil || d.drawn == version && (!d.screen.Live() || time.Since(d.drawnAt) < redraw) {
		return now, err
	}
	picture, err := d.cluster.explain(ctx, r, bool(d.screen.Ink()))
	if err == nil {
		d.screen.Show(picture)
		d.drawn, d.drawnAt = version, time.Now()
	}
	return now, err
}

// poll asks until the answer is yes, the time is up, or a process that it needs has died.
func (d *demo) poll(ctx context.Context, limit time.Duration, what string, ask func(context.Context) (bool, error)) error {
	late := time.After(limit)
	every := time.NewTicker(eager)
	defer every.Stop()
	for {
		yes, err := ask(ctx)
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-d.operator.done:
			return d.operator.died()
		case <-late:
			return errors.Join(fmt.Errorf("waited %s for %s", screen.Seconds(limit), what), err)
		case <-every.C:
		}
		if err := d.checkControlPlane(); err != nil {
			return err
		}
	}
}

// checkControlPlane returns why a part of the control plane ended, or nil.
func (d *demo) checkControlPlane() error {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.plane.Wait(over); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// subject names the sample.
func (d *demo) subject() string { return d.sampled.subject() }

// logOf returns what shows a line of the log of a process. What went wrong is not dimmed, and how
// the operator ends is nobody's concern unless it goes wrong.
func (d *demo) logOf(process string) func(line string) {
	prefix := d.screen.Ink().Dim("  " + process + " │ ")
	return func(line string) {
		wrong := strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN")
		switch {
		case wrong:
			d.screen.Print(prefix + line)
		case !d.stopping.Load():
			d.screen.Print(prefix + d.screen.Ink().Dim(line))
		}
	}
}

// stop stops everything that was started, in the order in which each can end cleanly.
func (d *demo) stop() error {
	if d.operator == nil && d.plane == nil {
		return nil
	}
	d.stopping.Store(true)
	st := d.screen.Start("stop")
	children := []*child{d.operator, d.proxy, d.registry.server}
	for _, p := range d.processes {
		children = append(children, p.child)
	}
	for _, c := range children {
		if c != nil {
			c.end()
		}
	}
	var err error
	about := "nothing is left running"
	if d.plane != nil {
		err = d.plane.Stop()
	}
	if d.kubeconfig != "" && d.sampled.Kind != "" {
		about = d.subject() + " stays in your cluster"
	}
	st.End(err, about)
	return err
}

// advice returns the commands to try in another terminal.
func (d *demo) advice() []string {
	ink := d.screen.Ink()
	out := []string{
		"", ink.Good("Ready after " + screen.Seconds(time.Since(d.begin))), "",
		"In another terminal:", "",
		"  " + ink.Bold("export KUBECONFIG="+d.plane.Kubeconfig()),
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		out = append(out, "  "+ink.Bold(`export PATH="$PATH:`+filepath.Dir(d.plane.Kubectl())+`"`))
	}
	short := strings.ToLower(d.sampled.Kind)
	name := d.sampled.Metadata.Name
	scale := "kubectl patch " + short + " " + name + ` --type=merge -p '{"spec":{"replicas":5}}'`
	if info := d.cluster.kinds[kindKey{d.sampled.APIVersion, d.sampled.Kind}]; info.scalable {
		scale = "kubectl scale " + short + " " + name + " --replicas=5"
	}
	for _, try := range [][2]string{
		{"kubectl get " + short + " " + name + " -o yaml", "what the operator says of it"},
		{scale, "more servers"},
		{"kubectl edit " + short + " " + name, "spec.ingress.enabled: true adds a component"},
		{"kubectl delete deployment " + name, "it comes back"},
		{"edit " + filepath.Join("cue", short, "web.cue") + " and save", "the operator changes while it runs"},
		{"kubectl delete " + short + " " + name, "everything goes, in reverse order"},
	} {
		out = append(out, fmt.Sprintf("  %s\n      %s", try[0], ink.Dim(try[1])))
	}
	return append(out, "", ink.Dim("Ctrl-C ends it."))
}
