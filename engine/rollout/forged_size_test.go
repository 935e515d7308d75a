package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
)

// counted is a cluster that counts live reads.
type counted struct {
	cluster.Cluster

	reads atomic.Int64
}

// GetLive implements cluster.Cluster.
func (c *counted) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	c.reads.Add(1)
	return c.Cluster.GetLive(ctx, ref)
}

// forgedEntries are entries of objects that are not there.
func forgedEntries(n int, component string) ownership.Group {
	g := ownership.Group{Component: component}
	for i := range n {
		g.Objects = append(g.Objects, ownership.Entry{Object: fmt.Sprint("o", i), APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("%s-%d", strings.Repeat("x", 30), i), UIDPrefix: "01234567"})
	}
	return g
}

// TestAForgedInventoryOfThousandsOfObjectsIsForgotten: who may write a status names as many objects as it has room for.
func TestAForgedInventoryOfThousandsOfObjectsIsForgotten(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason    string
		component string
		entries   int
		// keeps says that the resource's own entries are still there.
		keeps bool
	}{
		"of a component that is none":       {"they are pruned", "old", 2500, true},
		"in place of its own":               {"its own have no room, and are found again", "old", 2500, false},
		"of one of its components":          {"that is complete, and does not render them", "a", 2500, true},
		"of one that is not complete":       {"it depends on an object that cannot be written without room", "b", 2500, false},
		"of a few, which is not too large":  {"they are pruned", "old", 500, true},
		"of a few and without those it had": {"its own are found again", "old", 500, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `components: {
	a: objects: {for k, _ in {x: 1, y: 1} {(k): {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a-\(k)", data: size: "\(cr.spec.size)"}}}
	b: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b", data: size: live.a.x.data.size}
}`)
			c := &counted{Cluster: w.cluster}
			w.cluster = c
			if row.keeps {
				w.mustRun()
			}
			theirs := w.site.Put("tenant", object(kinds["ConfigMap"], w.owner.Namespace, "theirs"))
			forged := forgedEntries(row.entries, row.component)
			forged.Objects[7].Name = theirs.GetName()
			if i := slices.IndexFunc(w.inventory, func(g ownership.Group) bool { return g.Component == row.component }); i >= 0 {
				w.inventory = slices.Clone(w.inventory)
				w.inventory[i].Objects = slices.Concat(w.inventory[i].Objects, forged.Objects)
			} else {
				w.inventory = append(slices.Clone(w.inventory), forged)
			}
			w.spec["size"] = int64(2)
			w.wrote()
			for run := 0; w.inventory.Len() > 3; run++ {
				c.reads.Store(0)
				result := w.mustRun()
				if !result.Completion.Ready() && result.Completion.Fault.Reason != "" {
					t.Fatalf("%s: after %d reconciles it has the fault %+v", row.reason, run, result.Completion.Fault)
				}
				if got := c.reads.Load(); got > 410 {
					t.Errorf("%s: a reconcile reads %d objects", row.reason, got)
				}
				if left := w.inventory.Len(); left > 3 && (result.RequeueAfter == 0 || result.RequeueAfter > 5*time.Second) {
					t.Fatalf("%s: %d entries are left, and the next reconcile comes after %s", row.reason, left, result.RequeueAfter)
				}
				if run > 60 {
					t.Fatalf("%s: after %d reconciles, %d entries are left", row.reason, run, w.inventory.Len())
				}
			}
			if result := w.mustRun(); !result.Completion.Ready() {
				t.Errorf("%s: it is %+v", row.reason, result.Completion)
			}
			if got := w.object("ConfigMap", "b"); got == nil {
				t.Errorf("%s: what it renders is not there", row.reason)
			}
			if left, err := w.site.GetLive(t.Context(), cluster.RefOf(theirs)); left == nil || left.GetDeletionTimestamp() != nil {
				t.Errorf("%s: the object of somebody else is gone: %v", row.reason, err)
			}
		})
	}
}

func TestATeardownReadsFewForgedObjectsAtOnce(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	c := &counted{Cluster: w.cluster}
	w.cluster = c
	w.inventory = append(slices.Clone(w.inventory), forgedEntries(1000, "old"))
	for run := 0; w.inventory.Len() > 0; run++ {
		c.reads.Store(0)
		result, err := w.teardown()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.reads.Load(); got > 410 {
			t.Errorf("a reconcile reads %d objects", got)
		}
		if w.inventory.Len() > 0 && result.RequeueAfter == 0 || run > 10 {
			t.Fatalf("%d are left after %d reconciles, and the next one comes after %s", w.inventory.Len(), run, result.RequeueAfter)
		}
	}
}
