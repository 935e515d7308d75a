package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/test/inline"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

func settingsRef(name string) cluster.Ref {
	return cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "default", Name: name}
}

func TestWakesAreLimitedPerSourceAndPerResource(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	shop := func(int) ctrl.Request { return request("shop") }
	one := func(int) cluster.Ref { return settingsRef("one") }
	for name, row := range map[string]struct {
		reason string
		of     func(int) cluster.Ref
		owner  func(int) ctrl.Request
		every  time.Duration
		events int
		// want is how many wakes wait for nothing, how many different times the others wait
		// for, and the longest of those waits.
		now, later int
		longest    time.Duration
	}{
		"a few writes of an object": {"a rollout has that many", one, shop, ms, 10, 10, 0, 0},
		"many writes of an object":  {"attack 5a: 217 a second for 16 s", one, shop, 5 * ms, 3200, 10, 15, time.Second},
		"a write in two seconds":    {"nothing has to wait", one, shop, 2 * time.Second, 100, 100, 0, 0},
		"many objects":              {"names cost nothing: the resource has a limit of its own", func(i int) cluster.Ref { return settingsRef(fmt.Sprint(i)) }, shop, 5 * ms, 3200, 51, 79, 200 * ms},
		"an object that goes from resource to resource": {
			"each of them costs a turn", one, func(i int) ctrl.Request { return request(fmt.Sprint(i)) }, 5 * ms, 3200, 10, 3175, longestPause,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(1000, 0)
			w := newEventRateLimits(logr.Discard())
			w.now = func() time.Time { return now }
			atOnce, due := 0, map[time.Time]bool{}
			var longest time.Duration
			for i := range row.events {
				wait := w.delay(row.of(i), row.owner(i))
				longest = max(longest, wait)
				if wait == 0 {
					atOnce++
				} else {
					due[now.Add(wait)] = true
				}
				now = now.Add(row.every)
			}
			if d := len(due) - row.later; atOnce != row.now || d < -1 || d > 1 || longest > row.longest {
				t.Errorf("%s: %d at once, %d later, the longest wait %s; want %d, %d and at most %s", row.reason, atOnce, len(due), longest, row.now, row.later, row.longest)
			}
		})
	}
}

func TestAChangeWakesAllWhoReadAnObject(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	w := newEventRateLimits(logr.Discard())
	w.now = func() time.Time { return now }
	readers := make([]types.NamespacedName, 300)
	for i := range readers {
		readers[i] = request(fmt.Sprint(i)).NamespacedName
	}
	for _, wait := range w.delays(settingsRef("shared"), readers) {
		if wait != 0 {
			t.Fatalf("a reader waits %s for a change that was made once", wait)
		}
	}
	woken := 0
	for last := time.Duration(0); now.Before(time.Unix(1100, 0)); now = now.Add(5 * time.Millisecond) {
		waits := w.delays(settingsRef("shared"), readers)
		if waits[0] > longestPause || slices.Min(waits) != slices.Max(waits) {
			t.Fatalf("readers wait from %s to %s", slices.Min(waits), slices.Max(waits))
		}
		if last == 0 || waits[0] > last {
			woken += len(readers)
		}
		last = waits[0]
	}
	if woken < 600 || woken > 1500 {
		t.Errorf("20,000 writes in 100 s wake readers %d times", woken)
	}
}

func TestTurnsHaveABound(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	w := newEventRateLimits(logr.Discard())
	w.now = func() time.Time { return now }
	for i := range 3 * maxTracked {
		w.delay(settingsRef(fmt.Sprint(i)), request(fmt.Sprint(i)))
	}
	if len(w.sources.buckets) > maxTracked+1 || len(w.owners.buckets) > maxTracked+1 {
		t.Errorf("%d sources and %d owners are known", len(w.sources.buckets), len(w.owners.buckets))
	}
	if wait := w.delay(settingsRef("late"), request("late")); wait == 0 || wait > longestPause {
		t.Errorf("one of too many waits %s", wait)
	}
	now = now.Add(2 * longestPause)
	if wait := w.delay(settingsRef("late"), request("late")); wait != 0 || len(w.sources.buckets) > 2 {
		t.Errorf("after a pause it waits %s, and %d are known", wait, len(w.sources.buckets))
	}
}

// TestTheLastWakeIsDelivered plays 3200 writes in 16 s, the last of which says something new.
func TestTheLastWakeIsDelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := priorityqueue.New[ctrl.Request]("test")
		defer func() { q.ShutDown(); synctest.Wait() }()
		taken := make(chan time.Time, 10_000)
		go func() {
			for {
				req, _, shutdown := q.GetWithPriority()
				if shutdown {
					return
				}
				taken <- time.Now()
				q.Done(req)
			}
		}()
		toOwner := func(context.Context, client.Object) []ctrl.Request { return []ctrl.Request{request("shop")} }
		h := newEventRateLimits(logr.Discard()).limited(handler.EnqueueRequestsFromMapFunc(toOwner))
		object := inline.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: a}}")
		var last time.Time
		for range 3200 {
			last = time.Now()
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: object, ObjectNew: object}, q)
			<-time.After(5 * time.Millisecond)
		}
		<-time.After(5 * time.Second)
		var latest time.Time
		reconciles := len(taken)
		for range reconciles {
			latest = <-taken
		}
		if latest.Before(last) || latest.Sub(last) > sourceInterval {
			t.Errorf("the last event was at %s, and the last reconcile at %s", last, latest)
		}
		if reconciles > 30 {
			t.Errorf("3200 writes in 16 s cost %d reconciles", reconciles)
		}
	})
}

func TestAnEventThatMakesItsHandlerPanicIsLeftOut(t *testing.T) {
	t.Parallel()
	object := inline.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: a}}")
	h := newEventRateLimits(logr.Discard()).limited(handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request { panic("odd") }))
	h.Create(t.Context(), event.CreateEvent{Object: object}, nil)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: object, ObjectNew: object}, nil)
	h.Delete(t.Context(), event.DeleteEvent{Object: object}, nil)
	h.Generic(t.Context(), event.GenericEvent{Object: object}, nil)
}
