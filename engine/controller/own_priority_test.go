package controller

import (
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// withFairQueue runs a test with a queue of two workers, one of which is left to quick resources.
func withFairQueue(t *testing.T, test func(t *testing.T, q *fairQueue)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newFairQueue(2, func(string) bool { return false })
		q.newQueue("own", workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
		defer q.ShutDown()
		test(t, q)
	})
}

// add adds a request with a priority.
func add(q *fairQueue, name string, priority int) {
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, request(name))
	synctest.Wait()
}

// Whoever has its turn goes before others once. Its timers and retries do not.
func TestATurnLeavesARequestItsPriority(t *testing.T) {
	withFairQueue(t, func(t *testing.T, q *fairQueue) {
		t.Helper()
		add(q, "low", handler.LowPriority)
		for i := range turnEvery {
			add(q, fmt.Sprint("urgent-", i), changePriority)
		}
		for i := range turnEvery {
			req, priority, _ := q.GetWithPriority()
			last := i == turnEvery-1
			if last != (req.Name == "low") {
				t.Fatalf("%s is handed out in place %d", req.Name, i)
			}
			if want := map[bool]int{true: handler.LowPriority}[last]; priority != want {
				t.Errorf("%s has the priority %d, want %d", req.Name, priority, want)
			}
			q.Done(req)
		}
	})
}

func TestARequestThatWasParkedHasItsPriority(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		// added are the priorities of the request, one after the other.
		added []int
		want  int
	}{
		"low":                 {"nobody has changed it", []int{handler.LowPriority}, handler.LowPriority},
		"low, and then event": {"an object of it has changed", []int{handler.LowPriority, 0}, 0},
		"event, and then low": {"an object of it had changed", []int{0, handler.LowPriority}, 0},
		"urgent":              {"its timers are not urgent", []int{changePriority}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			withFairQueue(t, func(t *testing.T, q *fairQueue) {
				t.Helper()
				add(q, "first", 0)
				first, _, _ := q.GetWithPriority()
				got := make(chan int, 1)
				go func() {
					_, priority, _ := q.GetWithPriority()
					got <- priority
				}()
				for _, priority := range row.added {
					add(q, "second", priority)
				}
				q.Done(first)
				synctest.Wait()
				if priority := <-got; priority != row.want {
					t.Errorf("%s: it has the priority %d, want %d", row.reason, priority, row.want)
				}
			})
		})
	}
}
