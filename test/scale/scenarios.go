package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/internal/screen"
)

const (
	// settleTime is how long a controller may go on after everything is Ready, which counts: a status
	// may report progress later.
	settleTime = 3 * time.Second
	// restTime is how long a controller is observed at rest. Each resource is reconciled once.
	restTime = 30 * time.Second
	// idleTime is how long it is observed without resources.
	idleTime = 10 * time.Second
	// unchangedResync and unchangedTime make many reconciles that change nothing.
	unchangedResync = time.Second
	unchangedTime   = 15 * time.Second
	// creators is how many resources are created at the same time.
	creators = 8
)

// A bench measures one contestant on one control plane.
type bench struct {
	contestant

	plane      *plane
	screen     *screen.Screen
	results    *results
	n          int
	dir        string
	kubeconfig string
	// profiles is the folder for profiles; empty for none.
	profiles string

	// proc is the controller that runs.
	proc *process
	// startCPU is what a start without resources costs, editCPU what an edit of the package does, and
	// idleShare what the process uses of a core then.
	startCPU, editCPU time.Duration
	idleShare         float64
	// started and edited are the same without workers.
	started, edited cost
}

// A scenario is what is measured with one command.
type scenario struct {
	name, about string
	kind        schema.GroupVersionKind
	run         func(*bench, context.Context, func(string)) error
}

// scenarios are all scenarios, in their order. Those of one kind go on with what the ones before left.
var scenarios = []scenario{
	{"chain", "ten objects that pass on a value", chain, (*bench).chain},
	{"children", "one resource with 200 and 1,000 objects", batch, (*bench).children},
	{"fleet", "resources of 4 objects", batch, (*bench).fleet},
	{"idle", "no resources", webApp, (*bench).idle},
	{"create", "resources of 8 objects", webApp, (*bench).create},
	{"rest", "what nothing costs", webApp, (*bench).rest},
	{"unchanged", "reconciles that change nothing", webApp, (*bench).unchanged},
	{"restart", "a restart with settled resources", webApp, (*bench).restart},
	{"edit", "another version of the package", webApp, (*bench).edit},
	{"users", "what users change meanwhile", webApp, (*bench).users},
}

// needed are the scenarios that others go on from. The changes of users go with the package changed back.
var needed = map[string][]string{
	"rest":      {"create"},
	"unchanged": {"idle", "create"},
	"restart":   {"create"},
	"edit":      {"idle", "create"},
	"users":     {"idle", "create", "edit"},
}

// run runs the scenarios of a contestant one after the other.
func (b *bench) run(ctx context.Context, selected []scenario) (err error) {
	defer func() {
		if b.proc != nil {
			b.proc.stop()
		}
	}()
	var serving schema.GroupVersionKind
	for _, s := range selected {
		step, last := b.screen.Start(b.name+": "+s.about), ""
		show := func(text string) {
			last = text
			step.Detail(text)
		}
		if s.kind != serving {
			if err = b.serve(ctx, s.kind); err == nil {
				serving = s.kind
			}
		}
		if err == nil {
			err = b.runOne(ctx, s, show)
		}
		step.End(err, last)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", b.name, s.name, err)
		}
	}
	return nil
}

// runOne runs a scenario, with a profile of the process that it ends with.
func (b *bench) runOne(ctx context.Context, s scenario, show func(string)) error {
	if b.profiles == "" {
		return s.run(b, ctx, show)
	}
	if err := b.proc.saveProfiles(ctx, ""); err != nil {
		return err
	}
	if err := s.run(b, ctx, show); err != nil {
		return err
	}
	return b.proc.saveProfiles(ctx, filepath.Join(b.profiles, b.name+"-"+s.name))
}

// serve starts the controller for a kind, and measures it without resources.
func (b *bench) serve(ctx context.Context, kind schema.GroupVersionKind) error {
	if b.proc != nil {
		b.proc.stop()
	}
	b.dir = filepath.Join(b.plane.dir, strings.ToLower(kind.Kind))
	var err error
	if b.proc, err = b.start(ctx, b.kubeconfig, b.dir, serving(kind)); err != nil {
		return err
	}
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	b.startCPU = b.proc.CPU()
	b.started, err = b.proc.cost(ctx, kind)
	return err
}

// idle measures a controller without resources.
func (b *bench) idle(ctx context.Context, show func(string)) error {
	b.add("idle_start", milliseconds(b.startCPU))
	b.add("idle_memory", mebibytes(b.proc.Memory()))
	show("for " + idleTime.String())
	share, err := b.share(ctx, idleTime)
	if err != nil {
		return err
	}
	b.idleShare = share
	b.add("idle_cpu", 100*share)
	return b.measureEdit(ctx)
}

// share returns how much of a core the controller uses for some time.
func (b *bench) share(ctx context.Context, d time.Duration) (float64, error) {
	cpu, began := b.proc.CPU(), time.Now()
	err := pause(ctx, d)
	return float64(b.proc.CPU()-cpu) / float64(time.Since(began)), err
}

// measureEdit measures what an edit of the package costs without resources.
func (b *bench) measureEdit(ctx context.Context) error {
	if b.replaced == "" {
		b.editCPU, b.edited = b.startCPU, b.started
		return nil
	}
	before := b.proc.CPU()
	used, err := b.proc.cost(ctx, webApp)
	if err != nil {
		return err
	}
	changed := serving(webApp)
	for _, changed.probePath = range []string{changedProbe, usualProbe} {
		if b.proc, err = b.replace(ctx, b.proc, b.kubeconfig, b.dir, changed); err != nil {
			return err
		}
	}
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	b.editCPU = (b.proc.CPU() - before) / 2
	now, err := b.proc.cost(ctx, webApp)
	b.edited = now.minus(used).half()
	return err
}

// add notes a measurement.
func (b *bench) add(id string, value float64) { b.results.add(b.name, id, value) }

// perResource returns a processor time of all resources as milliseconds of each.
func (b *bench) perResource(d time.Duration) float64 { return milliseconds(max(d, 0)) / float64(b.n) }

// create creates the resources and waits until all are Ready.
func (b *bench) create(ctx context.Context, show func(string)) error {
	from, err := b.plane.MarkAudit(ctx)
	if err != nil {
		return err
	}
	b.proc.ForgetPeakMemory()
	used, err := b.proc.cost(ctx, webApp)
	if err != nil {
		return err
	}
	cpu, began := b.proc.CPU(), time.Now()
	if err := b.createAll(ctx, webApp, "shop", b.n, webAppSpec(), show); err != nil {
		return err
	}
	b.add("create_wall", time.Since(began).Seconds())
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	b.add("create_cpu", b.perResource(b.proc.CPU()-cpu))
	if err := b.addCost(ctx, "create", used); err != nil {
		return err
	}
	b.add("create_memory", mebibytes(b.proc.PeakMemory()))
	requests, writes, err := b.requests(ctx, from)
	b.add("create_requests", float64(requests)/float64(b.n))
	b.add("create_writes", float64(writes)/float64(b.n))
	return err
}

// webAppSpec asks for all eight objects.
func webAppSpec() map[string]any {
	return map[string]any{
		"image":       "nginx:1.25",
		"env":         map[string]any{"A": "1", "B": "2"},
		"files":       map[string]any{"index.html": "hello"},
		"secrets":     map[string]any{"TOKEN": "opensesame"},
		"ingress":     map[string]any{"enabled": true, "host": "shop.example.com"},
		"autoscaling": map[string]any{"enabled": true},
	}
}

// createAll creates resources and waits until they are Ready.
func (b *bench) createAll(ctx context.Context, kind schema.GroupVersionKind, name string, n int, spec map[string]any, show func(string)) error {
	e, err := b.plane.expect(ctx, kind, n, isReady)
	if err != nil {
		return err
	}
	err = concurrently(creators, n, func(i int) error {
		return b.plane.admin.Create(ctx, resource(kind, fmt.Sprintf("%s-%04d", name, i), spec))
	})
	if err != nil {
		e.stop()
		return err
	}
	return e.wait(ctx, b.proc, show)
}

// resource returns a custom resource.
func resource(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u = u.DeepCopy()
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// uncounted are the resources of requests that do not grow with the custom resources.
var uncounted = []string{"", "events", "leases", "selfsubjectreviews", "customresourcedefinitions"}

// requests returns how many requests the controller has made since a mark, and how many of them can
// change something. It leaves out Events, watches, and what a start asks for once: discovery, its own
// identity and the definitions.
func (b *bench) requests(ctx context.Context, from controlplane.AuditMark) (all, writes int, err error) {
	events, err := b.plane.AuditEvents(ctx, from, b.user())
	for _, e := range events {
		if e.Verb == "watch" || slices.Contains(uncounted, e.Resource) {
			continue
		}
		all++
		if slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) {
			writes++
		}
	}
	return all, writes, err
}

// user is as whom the controller acts.
func (b *bench) user() string { return "scale:" + b.name }

// rest measures a controller with nothing to do but its timers.
func (b *bench) rest(ctx context.Context, show func(string)) error {
	show("for " + restTime.String())
	from, err := b.plane.MarkAudit(ctx)
	if err != nil {
		return err
	}
	share, err := b.share(ctx, restTime)
	if err != nil {
		return err
	}
	b.add("rest_cpu", 100*share)
	requests, _, err := b.requests(ctx, from)
	b.add("rest_requests", float64(requests)/restTime.Minutes())
	return err
}

// unchanged measures a reconcile that changes nothing, by many of them.
func (b *bench) unchanged(ctx context.Context, show func(string)) error {
	v := serving(webApp)
	v.resync = unchangedResync
	if err := b.restartWith(ctx, v, 2*b.n); err != nil {
		return err
	}
	show("for " + unchangedTime.String())
	before, err := b.proc.reconciles(ctx, webApp.Kind)
	if err != nil {
		return err
	}
	share, err := b.share(ctx, unchangedTime)
	if err != nil {
		return err
	}
	after, err := b.proc.reconciles(ctx, webApp.Kind)
	if err != nil {
		return err
	}
	show(fmt.Sprint(after-before, " reconciles"))
	used := (share - b.idleShare) * float64(unchangedTime)
	b.add("unchanged_cpu", milliseconds(time.Duration(used))/float64(after-before))
	return nil
}

// restartWith starts another process with a version, and waits for a number of reconciles and until
// the controller has settled.
func (b *bench) restartWith(ctx context.Context, v version, reconciles int) error {
	b.proc.stop()
	var err error
	if b.proc, err = b.start(ctx, b.kubeconfig, b.dir, v); err != nil {
		return err
	}
	if err := b.awaitReconciles(ctx, reconciles); err != nil {
		return err
	}
	return pause(ctx, settleTime)
}

// awaitQuiet waits until the controller has sent no request for the time in which a status may lag
// behind: on a busy machine, resources that are Ready may still change.
func (b *bench) awaitQuiet(ctx context.Context) error {
	from, err := b.plane.MarkAudit(ctx)
	if err != nil {
		return err
	}
	var last error
	quiet := time.Now()
	err = b.proc.poll(ctx, "a controller that sends no requests", func() bool {
		at, err := b.plane.MarkAudit(ctx)
		if last = err; err != nil {
			return false
		}
		if n, _, err := b.requests(ctx, from); err != nil || n > 0 {
			last, from, quiet = err, at, time.Now()
		}
		return time.Since(quiet) > settleTime
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// awaitReconciles waits until the process has made so many reconciles.
func (b *bench) awaitReconciles(ctx context.Context, n int) error {
	var last error
	err := b.proc.poll(ctx, fmt.Sprintf("%d reconciles", n), func() bool {
		done, err := b.proc.reconciles(ctx, webApp.Kind)
		last = err
		return err == nil && done >= n
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// restart measures a start with settled resources.
func (b *bench) restart(ctx context.Context, _ func(string)) error {
	// Whatever was served before, the resources have settled with this version.
	if err := b.restartWith(ctx, serving(webApp), b.n); err != nil {
		return err
	}
	if err := b.awaitQuiet(ctx); err != nil {
		return err
	}
	b.proc.stop()
	from, err := b.plane.MarkAudit(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if b.proc, err = b.start(ctx, b.kubeconfig, b.dir, serving(webApp)); err != nil {
		return err
	}
	if err := b.awaitReconciles(ctx, b.n); err != nil {
		return err
	}
	b.add("restart_wall", time.Since(began).Seconds())
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	b.add("restart_cpu", b.perResource(b.proc.CPU()-b.startCPU))
	if err := b.addCost(ctx, "restart", b.started); err != nil {
		return err
	}
	_, writes, err := b.requests(ctx, from)
	b.add("restart_writes", float64(writes))
	return err
}
