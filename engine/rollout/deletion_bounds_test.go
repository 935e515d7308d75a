package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// An unreadable cluster refuses to read ConfigMaps, and counts how often it was asked for one.
type unreadable struct {
	cluster.Cluster

	asked int
}

// GetLive implements cluster.Cluster.
func (r *unreadable) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Kind == "ConfigMap" {
		r.asked++
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, ref.Name, nil)
	}
	return r.Cluster.GetLive(ctx, ref)
}

// configMaps returns a component with ConfigMaps that were applied, as an inventory has it.
func configMaps(component string, n int) ownership.Group {
	out := ownership.Group{Component: component}
	for i := range n {
		name := fmt.Sprintf("%s-%d", component, i)
		out.Objects = append(out.Objects, ownership.Entry{Object: name, APIVersion: "v1", Kind: "ConfigMap", Name: name, Digest: "d", UIDPrefix: "u"})
	}
	return out
}

// Anyone who may write the status can name thousands of objects that the operator may not read.
func TestObjectsThatMayNotBeReadAreNotAllAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "components: {}\n")
	c := &unreadable{Cluster: w.cluster}
	result, err := rollout.Teardown(t.Context(), c, w.owner, ownership.Inventory{configMaps("first", 10), configMaps("second", 500)})
	if err == nil {
		t.Error("a refused read is no error")
	}
	if c.asked != 10 {
		t.Errorf("%d reads were refused, want 10", c.asked)
	}
	if got := len(result.Inventory[0].Objects) + len(result.Inventory[1].Objects); got != 510 {
		t.Errorf("%d objects are left in the inventory, want 510", got)
	}
	second := slices.IndexFunc(result.Completion.Components, func(c status.Component) bool { return c.Name == "second" })
	if got := result.Completion.Components[second]; got.Reason != status.ReasonDeleteFailed || !strings.Contains(got.Message, "the other objects of that kind wait for the same permission") {
		t.Errorf("the component whose objects were not asked for says %s: %s", got.Reason, got.Message)
	}
}

// Anyone who may write the status can name thousands of objects that do not exist.
func TestObjectsThatAreNotThereAreLookedForSomeAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "components: {}\n")
	result, err := rollout.Teardown(t.Context(), w.cluster, w.owner, ownership.Inventory{configMaps("forged", 401)})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Inventory) != 1 || len(result.Inventory[0].Objects) != 1 || !result.MoreEntries || result.RequeueAfter == 0 {
		t.Errorf("the inventory has %v, it looks later: %v, after %s; want one object, and a later look", result.Inventory, result.MoreEntries, result.RequeueAfter)
	}
	if result, err = rollout.Teardown(t.Context(), w.cluster, w.owner, result.Inventory); err != nil || len(result.Inventory) > 0 || result.MoreEntries {
		t.Errorf("the second look leaves %v: %v", result.Inventory, err)
	}
}

// A readLog counts the live reads by the names of the objects.
type readLog struct {
	cluster.Cluster

	mu    sync.Mutex
	reads map[string]int
}

// GetLive implements cluster.Cluster.
func (l *readLog) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	l.mu.Lock()
	l.reads[ref.Name]++
	l.mu.Unlock()
	return l.Cluster.GetLive(ctx, ref)
}

// An inventory with more entries than fit is looked through before the first write. What the cache says is the owner's own costs no
// request.
func TestAnInventoryThatDoesNotFitIsLookedThroughSomeAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: old: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "old"}`)
	w.mustRun()
	w.load(`components: new: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "new"}`)
	forged := forgedEntries(2500, "forged")
	w.inventory = append(slices.Clone(w.inventory), forged)
	log := &readLog{Cluster: w.cluster, reads: map[string]int{}}
	w.cluster = log
	if result := w.mustRun(); !result.MoreEntries {
		t.Error("the other entries are not looked for later")
	}
	missed := 0
	for _, e := range forged.Objects {
		missed += log.reads[e.Name]
	}
	if missed != 400 || log.reads["old"] != 0 {
		t.Errorf("%d objects were looked for that are not there, and the owner's own %d times; want 400 and none", missed, log.reads["old"])
	}
}
