package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/controller/metrics"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// hangs is how long the API server takes for later and always.
const hangs = 30 * time.Second

// workshop is a controller of four workers with lanes, in a bubble of synctest. What a
// step does is in the name of its resource: hang, slow, fail, panic, or else nothing. That of
// one that is edited hangs the second time, as it is changed during the first. The API server hangs from the
// second time on of what is later, and of what is always. The namespace of mallory
// is suspect.
type workshop struct {
	t        *testing.T
	fair     *fairQueue
	running  *runningReconciles
	enqueuer enqueuer
	release  chan struct{}
	stop     context.CancelFunc
	ended    chan error
	log      strings.Builder

	mu    sync.Mutex
	taken map[string]int
}

// runningNow returns how many reconciles run.
func (w *workshop) runningNow() int {
	w.running.mu.Lock()
	defer w.running.mu.Unlock()
	return len(w.running.running)
}

// inWorkshop runs a test in a workshop, whose time passes when everybody waits.
func inWorkshop(t *testing.T, test func(*workshop)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := openWorkshop(t)
		defer w.close()
		test(w)
	})
}

func openWorkshop(t *testing.T) *workshop {
	t.Helper()
	w := &workshop{t: t, running: newRunningReconciles(5 * time.Minute), release: make(chan struct{}), ended: make(chan error, 1), taken: map[string]int{}}
	w.fair = newFairQueue(4, func(namespace string) bool { return namespace == "mallory" })
	p := newBackoffReconciler(w.reconcile, w.running, "Shop", w.fair, metrics.New().Controller("shops"))
	p.spent = func(ctx context.Context) time.Duration {
		if strings.HasPrefix(runningOf(ctx).request.Name, "slow") {
			return 2 * time.Second
		}
		return 0
	}
	logs := funcr.New(func(_, line string) { w.log.WriteString(line + "\n") }, funcr.Options{})
	c, err := controller.NewTypedUnmanaged("test", controller.TypedOptions[ctrl.Request]{
		Reconciler: p, RateLimiter: p, NewQueue: w.fair.newQueue, MaxConcurrentReconciles: w.fair.workers.concurrent(), SkipNameValidation: new(true),
		LogConstructor: func(req *ctrl.Request) logr.Logger {
			if req == nil {
				return logr.Discard()
			}
			return logs.WithValues("Shop", req.NamespacedName)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(&w.enqueuer); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(t.Context())
	go func() { w.ended <- c.Start(ctx) }()
	synctest.Wait()
	return w
}

func (w *workshop) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	w.mu.Lock()
	w.taken[key.Name]++
	first := w.taken[key.Name] == 1
	w.mu.Unlock()
	what, _, _ := strings.Cut(key.Name, "-")
	switch what {
	case "edit", "hang":
		if what == "edit" && first {
			w.fair.forgetSpeed(ctrl.Request{NamespacedName: key})
			w.enqueuer.enqueueAfter(key, 0)
			return 0, nil
		}
		select {
		case <-w.release:
		case <-ctx.Done():
		}
	case "later", "always":
		if what == "always" || !first {
			<-time.After(hangs)
		}
	case "slow":
		<-time.After(2 * time.Second)
	case "writes":
		for range 20 {
			<-time.After(time.Second)
			runningOf(ctx).noteAnswer()
		}
	case "takes":
		<-time.After(28 * time.Millisecond)
	case "panic":
		panic("a value")
	}
	return 0, nil
}

// close ends the controller, and the steps with it.
func (w *workshop) close() {
	w.t.Helper()
	w.stop()
	if err := <-w.ended; err != nil {
		w.t.Error(err)
	}
	close(w.release)
	synctest.Wait()
}

// wake wakes resources as their events do: somebody has changed them.
func (w *workshop) wake(namespace, what string, n int) {
	for i := range n {
		key := types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("%s-%d", what, i)}
		w.fair.forgetSpeed(ctrl.Request{NamespacedName: key})
		w.enqueuer.enqueueAfter(key, 0)
	}
}

// again wakes a resource that nobody has changed.
func (w *workshop) again(namespace, name string) {
	w.enqueuer.enqueueAfter(types.NamespacedName{Namespace: namespace, Name: name}, 0)
}

// took returns how many steps were taken of the resources whose names begin so.
func (w *workshop) took(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, name := range slices.Sorted(maps.Keys(w.taken)) {
		if strings.HasPrefix(name, what) {
			n += w.taken[name]
		}
	}
	return n
}

func (w *workshop) expect(reason, what string, want int) {
	w.t.Helper()
	synctest.Wait()
	if got := w.took(what); got != want {
		w.t.Errorf("%s: %d steps of %s were taken, want %d", reason, got, what, want)
	}
}

func TestWaitingResourcesLeaveAWorkerToWhatIsQuick(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("bob", "known", 1)
		w.expect("it is there before", "known", 1)
		w.wake("alice", "hang", 4)
		w.expect("1d: one worker is left to what is known", "hang", 3)
		w.again("bob", "known-0")
		w.expect("1d: what was quick goes on", "known", 2)
		<-time.After(time.Minute)
		if err := w.running.check(nil); err != nil {
			w.t.Errorf("it is ill before the limit: %v", err)
		}
		<-time.After(5 * time.Minute)
		if err := w.running.check(nil); !errors.Is(err, errHung) {
			w.t.Errorf("8: it is not ill after the limit: %v", err)
		}
		if n := strings.Count(w.log.String(), "a reconcile is slow"); n != 3 {
			w.t.Errorf("the log tells of %d slow steps, not 3:\n%s", n, w.log.String())
		}
	})
}

func TestAnEditPassesThePackageChangeOfAThousandResources(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("bob", "edited", 1)
		w.wake("alice", "takes", 1000)
		<-time.After(time.Minute)
		w.expect("all are known to be quick", "takes", 1000)
		var all []types.NamespacedName
		for i := range 1000 {
			all = append(all, types.NamespacedName{Namespace: "alice", Name: fmt.Sprintf("takes-%d", i)})
		}
		w.enqueuer.enqueueBehind(all...)
		<-time.After(time.Second)
		w.wake("bob", "edited", 1)
		<-time.After(60 * time.Millisecond)
		w.expect("the edit waits for one reconcile at most", "edited", 2)
		if n := w.took("takes"); n <= 1000 || n >= 1500 {
			t.Errorf("%d of 1,000 resources have the new version after a second", n-1000)
		}
		<-time.After(time.Minute)
		w.expect("and all of them get it", "takes", 2000)
	})
}

func TestSuspectNamespacesShareAWorker(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("bob", "known", 5)
		w.expect("they are there before", "known", 5)
		w.wake("mallory", "quick", 5)
		w.expect("hers, too", "quick", 5)
		w.wake("mallory", "hang", 100)
		w.expect("one of hers has a worker", "hang", 1)
		for i := range 5 {
			w.again("mallory", fmt.Sprintf("quick-%d", i)) // an object of theirs has changed, which others may write
		}
		w.expect("what was quick waits with the others", "quick", 5)
		w.wake("bob", "new", 20)
		w.wake("bob", "known", 5)
		w.expect("who did nothing is served at once", "new", 20)
		w.expect("also after a change", "known", 10)
	})
}

func TestAChangeDuringAStepIsDoubtedAfterIt(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("bob", "known", 1)
		w.expect("it is there before", "known", 1)
		w.wake("alice", "edit", 8)
		synctest.Wait()
		if n := w.runningNow(); n != 3 {
			w.t.Errorf("%d steps hang, and one worker is left to what is known: the change was not in the step that was quick", n)
		}
		w.again("bob", "known-0")
		w.expect("what was quick goes on", "known", 2)
	})
}

func TestSlowResourcesShareAWorker(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("alice", "slow", 30)
		<-time.After(20*time.Second + time.Millisecond)
		w.expect("what is new has three workers", "slow", 30)
		w.wake("alice", "slow", 30)
		<-time.After(20*time.Second + time.Millisecond)
		w.expect("what is known to be slow has one", "slow", 41)
		w.wake("alice", "new", 50)
		w.expect("and the others have theirs", "new", 50)
		<-time.After(time.Minute)
		w.expect("each has its turn", "slow", 60)
	})
}

func TestManyWritesAreNotSlow(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("bob", "writes", 1)
		<-time.After(time.Minute)
		if diff := cmp.Diff("", w.log.String()); diff != "" {
			w.t.Errorf("the log tells of it (-want +got):\n%s", diff)
		}
	})
}

func TestAPanicOfAStepIsTriedAgain(t *testing.T) {
	inWorkshop(t, func(w *workshop) {
		w.wake("alice", "panic", 1)
		<-time.After(3*time.Second + time.Millisecond)
		w.expect("with backoff", "panic", 3)
		if said := w.log.String(); !strings.Contains(said, "fair_queue_test.go") || strings.Contains(said, "a value") {
			w.t.Errorf("the log has what it panicked with, or not where: %s", said)
		}
	})
}

func TestWhatWaitsForAWorkerKeepsItsPriority(t *testing.T) {
	t.Parallel()
	l := newFairQueue(4, func(string) bool { return false })
	for _, name := range []string{"1", "2", "3"} {
		if !l.admit(request(name), 0) {
			t.Fatalf("%s gets no worker", name)
		}
	}
	const low = -100
	for _, p := range []parked{{request("a"), low}, {request("b"), 0}, {request("c"), low}, {request("d"), low}, {request("b"), low}, {request("d"), 0}} {
		if l.admit(p.request, p.priority) {
			t.Errorf("%s gets the worker that is left to what is quick", p.request)
		}
	}
	want := []parked{{request("b"), 0}, {request("d"), 0}, {request("a"), low}, {request("c"), low}}
	if diff := cmp.Diff(want, l.parked, cmp.AllowUnexported(parked{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(l.priorities) != len(l.parked) {
		t.Errorf("%d priorities are known of %d that wait", len(l.priorities), len(l.parked))
	}
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}
