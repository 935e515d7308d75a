package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// userEvery is the time between two changes by users.
	userEvery = 100 * time.Millisecond
	// userChanges bounds the changes. Each rolls the pods of a resource, so on a machine that takes longer for that
	// than users take for the next one, the new version is never rolled out everywhere.
	userChanges = 1000
	// userStride spreads the changes over the resources.
	userStride = 7919
)

var (
	deployments       = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	configMaps        = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	disruptionBudgets = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
)

// edit measures another version of the package: every Deployment changes.
func (b *bench) edit(ctx context.Context, show func(string)) error {
	cpu, began := b.proc.CPU(), time.Now()
	was := b.proc
	before, err := b.proc.cost(ctx, webApp)
	if err != nil {
		return err
	}
	if err := b.rollOut(ctx, changedProbe, show); err != nil {
		return err
	}
	b.add("edit_wall", time.Since(began).Seconds())
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	used := b.proc.CPU()
	if b.proc == was {
		used -= cpu
	} else {
		before = cost{}
	}
	b.add("edit_cpu", b.perResource(used-b.editCPU))
	return b.addCost(ctx, "edit", before.plus(b.edited))
}

// rollOut makes the controller serve a version with another path of the probe, and waits until every
// Deployment has it and is rolled out.
func (b *bench) rollOut(ctx context.Context, probePath string, show func(string)) error {
	e, err := b.plane.expect(ctx, deployments, b.n, func(u *unstructured.Unstructured) bool { return rolledOut(u, probePath) })
	if err != nil {
		return err
	}
	v := serving(webApp)
	v.probePath = probePath
	if b.proc, err = b.replace(ctx, b.proc, b.kubeconfig, b.dir, v); err != nil {
		e.stop()
		return err
	}
	return e.wait(ctx, b.proc, show)
}

// rolledOut reports whether the servers of a Deployment run with a path of their probe.
func rolledOut(u *unstructured.Unstructured, probePath string) bool {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return false
	}
	first, _ := containers[0].(map[string]any)
	path, _, _ := unstructured.NestedString(first, "readinessProbe", "httpGet", "path")
	status, _ := u.Object["status"].(map[string]any)
	return path == probePath && status["observedGeneration"] == u.GetGeneration() &&
		status["updatedReplicas"] == status["replicas"] && status["availableReplicas"] == status["replicas"]
}

// users measures how long changes by users take while the package changes.
func (b *bench) users(ctx context.Context, show func(string)) error {
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	editing, stop := context.WithCancel(ctx)
	defer stop()
	u := &users{bench: b, pending: map[string]change{}}
	if err := b.plane.watch(watching, configMaps, u.event); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- u.edit(editing) }()
	err := b.rollOut(ctx, usualProbe, show)
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	// The last ones count, too: they may have waited the longest.
	if err := b.proc.poll(ctx, "the changes of users", func() bool { return u.left() == 0 }); err != nil {
		return err
	}
	show(fmt.Sprint(len(u.took), " changes"))
	slices.Sort(u.took)
	b.add("edit_p50", quantile(u.took, 0.5).Seconds())
	b.add("edit_p99", quantile(u.took, 0.99).Seconds())
	return nil
}

// quantile returns the value below which a share of sorted values lies.
func quantile(sorted []time.Duration, share float64) time.Duration {
	at := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[max(at, 0)]
}

// users change resources, one after the other.
type users struct {
	*bench

	mu      sync.Mutex
	pending map[string]change // by resource
	took    []time.Duration
}

// A change is what a user has changed, and when.
type change struct {
	text  string
	began time.Time
}

// left returns how many changes have not arrived.
func (u *users) left() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.pending)
}

// edit changes resources until the context ends, and at most userChanges times.
func (u *users) edit(ctx context.Context) error {
	// What was begun is ended, and an API server that is asked to patch twice would say so.
	background := context.WithoutCancel(ctx)
	for i := 0; ctx.Err() == nil && i < userChanges; i++ {
		name, text := fmt.Sprintf("shop-%04d", i*userStride%u.n), fmt.Sprint("change ", i)
		if !u.begin(name, text) {
			_ = pause(ctx, userEvery) // the loop ends with the context
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"files":{"change":%q}}}`, text)
		if err := u.plane.admin.Patch(background, resource(webApp, name, nil), client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
		_ = pause(ctx, userEvery)
	}
	return nil
}

// begin notes a change, unless one of the same resource is pending.
func (u *users) begin(name, text string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, pending := u.pending[name]; pending {
		return false
	}
	u.pending[name] = change{text: text, began: time.Now()}
	return true
}

// event notes how long the change took that a ConfigMap has.
func (u *users) event(_ watch.EventType, o *unstructured.Unstructured) {
	text, _, _ := unstructured.NestedString(o.Object, "data", "change")
	u.mu.Lock()
	defer u.mu.Unlock()
	if c, pending := u.pending[o.GetName()]; pending && c.text == text {
		u.took = append(u.took, time.Since(c.began))
		delete(u.pending, o.GetName())
	}
}
