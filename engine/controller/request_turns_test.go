package controller

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// A bubble is the queue of a controller, in a bubble of synctest.
type bubble struct {
	*fairQueue

	t *testing.T
}

// inQueue runs a test with the queue of a controller.
func inQueue(t *testing.T, test func(*bubble)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newFairQueue(4, func(string) bool { return false })
		q.newQueue("test", workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Second, time.Minute))
		defer q.ShutDown()
		test(&bubble{q, t})
	})
}

// handedOut returns the names of the next requests of a queue, each of which is done at once.
func handedOut(q *fairQueue, n int) []string {
	var out []string
	for range n {
		synctest.Wait()
		req, _ := q.Get()
		q.Done(req)
		out = append(out, req.Name)
	}
	return out
}

// resourceNamed is a resource as an event has it.
func resourceNamed(name, version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetNamespace("default")
	u.SetName(name)
	u.SetResourceVersion(version)
	return u
}

func TestAChangeOfAResourcePassesTheEventsOfObjects(t *testing.T) {
	inQueue(t, func(b *bubble) {
		t, q := b.t, b.fairQueue
		h := urgently(&handler.EnqueueRequestForObject{})
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request("package"))
		q.Add(request("object"))
		h.Create(t.Context(), event.CreateEvent{Object: resourceNamed("listed", "1"), IsInInitialList: true}, q)
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: resourceNamed("resynced", "1"), ObjectNew: resourceNamed("resynced", "1")}, q)
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: resourceNamed("changed", "1"), ObjectNew: resourceNamed("changed", "2")}, q)
		h.Create(t.Context(), event.CreateEvent{Object: resourceNamed("created", "1")}, q)
		h.Delete(t.Context(), event.DeleteEvent{Object: resourceNamed("deleted", "2")}, q)
		got := handedOut(q, 7)
		// The fourth is the one whose turn it is, which is next in any case or has waited longest.
		want := []string{"changed", "created", "deleted", "package", "object", "listed", "resynced"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestChangesWithoutEndStopNothingElse(t *testing.T) {
	inQueue(t, func(b *bubble) {
		t, q := b.t, b.fairQueue
		var want []string
		for i := range 10 {
			name := fmt.Sprint("package-", i)
			q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request(name))
			want = append(want, name)
		}
		q.Add(request("object"))
		q.AddRateLimited(request("failed"))
		q.AddAfter(request("timer"), 2*time.Second)
		q.AddAfter(request("later"), time.Hour)
		<-time.After(3 * time.Second)
		want = append(want, "object", "failed", "timer")
		var got []string
		changes := 0
		for range turnEvery * (len(want) + 5) {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: new(changePriority)}, request("mallory-1"), request("mallory-2"), request("mallory-3"))
			if name := handedOut(q, 1)[0]; name[:4] == "mall" {
				changes++
			} else {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("others have a turn in the order in which they are due (-want +got):\n%s", diff)
		}
		if wanted := turnEvery*(len(want)+5) - len(want); changes != wanted {
			t.Errorf("%d changes were handed out, want all other times, %d", changes, wanted)
		}
		if n := len(q.turns.waiting); n != 1 || len(q.turns.byDue) != n {
			t.Errorf("%d requests are known to wait, and %d of them have a place; want the one that is not due", n, len(q.turns.byDue))
		}
	})
}

func TestWhatFollowsAChangeByItselfIsNotUrgent(t *testing.T) {
	inQueue(t, func(b *bubble) {
		t, q := b.t, b.fairQueue
		for _, row := range []struct {
			reason      string
			given, want int
		}{
			{"a new version of the package is retried behind all others", handler.LowPriority, handler.LowPriority},
			{"the timer of a resource that was edited is nothing that a person waits for", changePriority, 0},
			{"nor is that of one that had its turn", turnPriority, 0},
			{"an event of an object", 0, 0},
		} {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: new(row.given)}, request("a"))
			synctest.Wait()
			req, got, _ := q.GetWithPriority()
			q.Done(req)
			if got != row.want {
				t.Errorf("%s: priority %d, want %d", row.reason, got, row.want)
			}
		}
	})
}

func TestManyUpdatesOfObjectsCauseOneReconcile(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		toShop := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request { return []ctrl.Request{request("shop")} })
		h := newEventRateLimits(logr.Discard()).limited(batched(toShop))
		update := func() {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: resourceNamed("web", "1"), ObjectNew: resourceNamed("web", "2")}, w.fair)
		}
		for range 5 {
			update()
			<-time.After(updateDelay / 10)
		}
		w.expect("the first update waits for others", "shop", 0)
		<-time.After(updateDelay)
		w.expect("one reconcile is for all of them", "shop", 1)
		update()
		w.enqueuer.enqueueAfter(types.NamespacedName{Namespace: "default", Name: "shop"}, 0)
		w.expect("who changes the resource does not wait", "shop", 2)
		<-time.After(updateDelay)
		w.expect("and acts upon the update as well", "shop", 2)
		h.Delete(t.Context(), event.DeleteEvent{Object: resourceNamed("web", "3")}, w.fair)
		w.expect("a teardown goes on at once", "shop", 3)
		h.Create(t.Context(), event.CreateEvent{Object: resourceNamed("web", "4")}, w.fair)
		w.expect("a rollout, too", "shop", 4)
	})
}

func TestATurnThatComesTooLateIsNoOther(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	given := func() requestTurns {
		turns := newRequestTurns()
		turns.enter(request("a"), 0, now)
		turns.handedOut = turnEvery - 1
		if req, _, has := turns.give(now); !has || req != request("a") {
			t.Fatalf("the turn is that of %v: %v", req, has)
		}
		return turns
	}
	turns := given()
	if !turns.handOut(request("a"), turnPriority) {
		t.Error("what has its turn is not handed out")
	}
	turns = given()
	if !turns.handOut(request("a"), 0) {
		t.Error("the library had handed it out before the turn came, and nobody gets it")
	}
	if turns.handOut(request("a"), turnPriority) {
		t.Error("the library hands it out again for its turn, and somebody gets it twice")
	}
	if len(turns.given)+len(turns.waiting) > 0 {
		t.Errorf("something is left: %v, %v", turns.given, turns.waiting)
	}
	turns = given()
	turns.handOut(request("a"), 0)
	turns.enter(request("a"), 0, now)
	if !turns.handOut(request("a"), turnPriority) {
		t.Error("an event has come since, and is lost")
	}
}

// The library hands a request out at the moment that it gets its turn. It is parked, and gets a worker while the library hands
// it out for the turn as well.
func TestARequestThatIsParkedAtItsTurnIsHandedOutOnce(t *testing.T) {
	inQueue(t, func(b *bubble) {
		t, q := b.t, b.fairQueue
		for i := range q.unprovenWorkers {
			busy := request(fmt.Sprint("busy-", i))
			q.Add(busy)
			synctest.Wait()
			q.Get()
		}
		q.Add(request("a"))
		synctest.Wait()
		req, priority, _ := q.PriorityQueue.GetWithPriority()
		q.turns.handedOut = turnEvery - 1
		q.takeTurn()
		if q.handOut(req, priority) || q.waiting() != 1 {
			t.Fatal("it is not parked, although there is no worker for it")
		}
		q.PriorityQueue.Done(req)
		synctest.Wait()
		req, priority, _ = q.PriorityQueue.GetWithPriority() // for its turn
		q.Done(request("busy-0"))                            // a worker for it is free
		if !q.handOut(req, priority) {
			t.Fatal("it has no worker")
		}
		q.Done(req)
		synctest.Wait()
		if n := q.Len(); n > 0 {
			t.Errorf("%d requests are left, so it is reconciled once more", n)
		}
	})
}

// A request is parked, and an event has the library hand it out once more. It gets a worker at that very moment, so that it is
// handed out both as the request that has a worker and as that of the event.
func TestARequestThatGetsAWorkerAsTheLibraryHandsItOutIsHandedOutOnce(t *testing.T) {
	inQueue(t, func(b *bubble) {
		t, q := b.t, b.fairQueue
		for i := range q.unprovenWorkers {
			q.Add(request(fmt.Sprint("busy-", i)))
			synctest.Wait()
			q.Get()
		}
		q.Add(request("a"))
		synctest.Wait()
		if req, priority, _ := q.PriorityQueue.GetWithPriority(); q.handOut(req, priority) || q.waiting() != 1 {
			t.Fatal("it is not parked, although there is no worker for it")
		}
		q.PriorityQueue.Done(request("a"))
		q.Add(request("a")) // for an event
		synctest.Wait()
		req, priority, _ := q.PriorityQueue.GetWithPriority()
		q.Done(request("busy-0")) // a worker for it is free
		if !q.handOut(req, priority) {
			t.Fatal("it has no worker")
		}
		q.Done(req)
		synctest.Wait()
		for q.Len() > 0 {
			if req, priority, _ := q.PriorityQueue.GetWithPriority(); q.handOut(req, priority) {
				t.Errorf("%s is reconciled once more", req.Name)
			}
			q.PriorityQueue.Done(req)
			synctest.Wait()
		}
		if left := len(q.turns.waiting); left > 0 {
			t.Errorf("%d requests wait for a turn, and none is in the queue", left)
		}
	})
}

// A lockedLibrary is the queue of the library, which expects that nothing else happens in a fairQueue while a request is added.
type lockedLibrary struct {
	priorityqueue.PriorityQueue[ctrl.Request]

	t *testing.T
	q *fairQueue
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (l lockedLibrary) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	if l.q.mu.TryLock() {
		l.q.mu.Unlock()
		l.t.Errorf("%v may have its turn and be handed out before it is added, and is handed out once more after that", requests)
	}
	l.PriorityQueue.AddWithOpts(o, requests...)
}

func TestARequestCannotHaveItsTurnBeforeTheLibraryHasIt(t *testing.T) {
	inQueue(t, func(b *bubble) {
		t, q := b.t, b.fairQueue
		q.PriorityQueue = lockedLibrary{q.PriorityQueue, t, q}
		q.Add(request("a"))
		q.AddRateLimited(request("b"))
	})
}
