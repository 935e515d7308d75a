package history_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/history"
)

var (
	shops = schema.GroupKind{Group: "example.com", Kind: "Shop"}
	shop  = types.NamespacedName{Namespace: "team-a", Name: "shop"}
	noon  = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
)

// A clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newLog returns a log with limits, the part of it about shops, and its clock. What differs between two objects is the text
// of both.
func newLog(limits history.Limits) (*history.KindLog, *clock) {
	c := &clock{now: noon}
	log := history.New(limits, c.Now, history.Objects{
		Changes: func(e history.Event) []history.Change {
			before := "nothing"
			if e.Before != nil {
				before = text(e.Before)
			}
			return []history.Change{{Manager: "somebody", Fields: []string{before + " to " + text(e.After)}}}
		},
		Size: func(u *unstructured.Unstructured) int { return len(text(u)) },
	})
	return log.ForKind(shops), c
}

func text(u *unstructured.Unstructured) string { return fmt.Sprint(u.Object["text"]) }

func object(text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"text": text}}
}

// edit is an event that changes an object.
func edit(name, before, after string) history.Event {
	return history.Event{
		Trigger: history.Trigger{Cause: history.Object, Action: history.Changed, APIVersion: "v1", Kind: "ConfigMap", Name: name},
		Before:  object(before), After: object(after),
	}
}

// reconcile reconciles a resource once.
func reconcile(of *history.KindLog, key types.NamespacedName, uid types.UID, result history.Result, again time.Duration) {
	of.NoteDequeued(key)
	_, run := of.Begin(context.Background(), key, uid)
	run.End(result, again, uid)
}

// causes returns the causes of each reconcile, the newest first, and how often each was in a row.
func causes(of *history.KindLog, uid types.UID) []string {
	r, _ := of.Report(shop, uid)
	var out []string
	for _, one := range r.Reconciles {
		var all []string
		for _, t := range one.Triggers {
			said := fmt.Sprintf("%s %s", t.Cause, t.Name)
			for _, c := range t.Changes {
				said += " " + strings.Join(c.Fields, ",")
			}
			all = append(all, strings.TrimSpace(said))
		}
		out = append(out, fmt.Sprintf("%dx %s", one.Times, strings.Join(all, "; ")))
	}
	return out
}

func TestAReconcileIsTriggeredByWhatHasComeUntilAWorkerHadIt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		do     func(*history.KindLog, *clock)
		want   []string
	}{
		"an event": {"it enqueues the resource", func(of *history.KindLog, _ *clock) {
			of.Note(shop, edit("one", "a", "b"))
			reconcile(of, shop, "1", history.Success, 0)
		}, []string{"1x Object one a to b"}},
		"several events of an object": {"one comparison with what it was first says all", func(of *history.KindLog, _ *clock) {
			of.Note(shop, edit("one", "a", "b"))
			of.Note(shop, edit("one", "b", "c"))
			of.Note(shop, edit("one", "c", "d"))
			reconcile(of, shop, "1", history.Success, 0)
		}, []string{"1x Object one a to d"}},
		"an event during a reconcile": {"it is for the next one", func(of *history.KindLog, _ *clock) {
			of.Note(shop, edit("one", "a", "b"))
			of.NoteDequeued(shop)
			_, run := of.Begin(t.Context(), shop, "1")
			of.Note(shop, edit("two", "x", "y"))
			run.End(history.Success, 0, "1")
			reconcile(of, shop, "1", history.Success, 0)
		}, []string{"1x Object two x to y", "1x Object one a to b"}},
		"a timer": {"it is due, and nothing has come", func(of *history.KindLog, c *clock) {
			of.Note(shop, edit("one", "a", "b"))
			reconcile(of, shop, "1", history.RequeueAfter, time.Minute)
			c.advance(time.Minute)
			reconcile(of, shop, "1", history.Success, 0)
		}, []string{"1x Timer", "1x Object one a to b"}},
		"an event before a timer": {"the timer begins anew, and triggers nothing", func(of *history.KindLog, c *clock) {
			of.Note(shop, edit("one", "a", "b"))
			reconcile(of, shop, "1", history.RequeueAfter, time.Minute)
			c.advance(time.Second)
			of.Note(shop, edit("two", "a", "b"))
			reconcile(of, shop, "1", history.Success, 0)
		}, []string{"1x Object two a to b", "1x Object one a to b"}},
		"a retry": {"the reconcile before has failed", func(of *history.KindLog, c *clock) {
			of.Note(shop, edit("one", "a", "b"))
			reconcile(of, shop, "1", history.Error, 0)
			of.Retry(shop, time.Second)
			c.advance(time.Second)
			reconcile(of, shop, "1", history.Success, 0)
		}, []string{"1x Retry", "1x Object one a to b"}},
		"many timers": {"they would hide what somebody has done", func(of *history.KindLog, c *clock) {
			of.Note(shop, edit("one", "a", "b"))
			for range 100 {
				reconcile(of, shop, "1", history.RequeueAfter, time.Second)
				c.advance(time.Second)
			}
		}, []string{"99x Timer", "1x Object one a to b"}},
		"nothing that was noted": {"it came at the moment when the reconcile before began", func(of *history.KindLog, _ *clock) {
			reconcile(of, shop, "1", history.Success, 0)
		}, []string{"1x Again"}},
		"another resource of the name": {"its reconciles are nobody's who may see the new one", func(of *history.KindLog, _ *clock) {
			of.Note(shop, edit("secret-plan", "a", "b"))
			reconcile(of, shop, "0", history.RequeueAfter, time.Second)
			of.Note(shop, edit("one", "a", "b"))
			reconcile(of, shop, "1", history.Success, 0)
		}, []string{"1x Object one a to b"}},
		"a resource that is gone": {"nothing of it is kept", func(of *history.KindLog, _ *clock) {
			of.Note(shop, edit("one", "a", "b"))
			of.NoteDequeued(shop)
			_, run := of.Begin(t.Context(), shop, "1")
			run.End(history.Success, 0, "")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, c := newLog(history.DefaultLimits)
			row.do(of, c)
			if diff := cmp.Diff(row.want, causes(of, "1"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestWhoAsksForAnotherResourceOfTheNameLearnsNothing(t *testing.T) {
	t.Parallel()
	of, _ := newLog(history.DefaultLimits)
	of.Note(shop, edit("one", "a", "b"))
	reconcile(of, shop, "1", history.Success, 0)
	for _, uid := range []types.UID{"2", ""} {
		if r, known := of.Report(shop, uid); known {
			t.Errorf("with the UID %q: %v", uid, r)
		}
	}
}

func TestRequestsAreCountedInTheReconcileThatSendsThem(t *testing.T) {
	t.Parallel()
	of, _ := newLog(history.DefaultLimits)
	of.NoteDequeued(shop)
	ctx, run := of.Begin(t.Context(), shop, "1")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { history.CountRequest(ctx, "apply", "deployments.apps") })
	}
	all.Wait()
	history.CountRequest(ctx, "get", "things")
	history.CountRequest(t.Context(), "get", "things") // in no reconcile
	for i := range 1000 {
		history.CountRequest(ctx, "get", fmt.Sprint("kind-", i))
	}
	run.End(history.Success, 0, "1")
	r, _ := of.Report(shop, "1")
	got, total := r.Reconciles[0].Requests, 0
	for _, one := range got {
		total += one.Count
	}
	if got[0] != (history.Requests{Verb: "apply", Resource: "deployments.apps", Count: 8}) || total != 1009 || len(got) > 33 {
		t.Errorf("%d requests of %d kinds: %v", total, len(got), got)
	}
}

// TestAFloodOfEventsTakesBoundedMemory lets tenants do the worst: many resources, each with many objects of long names that
// change all the time, and that are large.
func TestAFloodOfEventsTakesBoundedMemory(t *testing.T) {
	t.Parallel()
	limits := history.Limits{Resources: 500, Reconciles: 10, Bytes: 1 << 20, Held: 1 << 20}
	of, _ := newLog(limits)
	before := heap()
	long := strings.Repeat("x", 1<<20)
	for i := range 2_000 {
		key := types.NamespacedName{Namespace: "flood", Name: fmt.Sprint(i)}
		for j := range 40 {
			of.Note(key, edit(fmt.Sprint(j, long[:10_000]), fmt.Sprint(i, long[:1000]), "b"))
		}
		if i%2 == 0 {
			reconcile(of, key, "1", history.Success, 0)
		}
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("it takes %d KiB", grown>>10)
	}
	if _, known := of.Report(types.NamespacedName{Namespace: "flood", Name: "0"}, "1"); known {
		t.Error("the first of 2000 resources is still known")
	}
	of.Note(shop, edit("one", "a", "b"))
	reconcile(of, shop, "1", history.Success, 0)
	if got := causes(of, "1"); len(got) != 1 {
		t.Errorf("of a new resource it knows %v", got)
	}
	of.Forget()
	if _, known := of.Report(shop, "1"); known {
		t.Error("it knows the resources of a controller that has ended")
	}
}

// heap returns how much memory is in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestAnObjectThatCannotBeHeldIsNamedWithoutItsFields(t *testing.T) {
	t.Parallel()
	limits := history.DefaultLimits
	limits.Held = 10
	of, _ := newLog(limits)
	of.Note(shop, edit("large", strings.Repeat("x", 11), "b"))
	reconcile(of, shop, "1", history.Success, 0)
	of.Note(shop, edit("small", "a", "b"))
	reconcile(of, shop, "1", history.Success, 0)
	of.Note(shop, edit("small", strings.Repeat("x", 10), "b")) // what was held is free again
	reconcile(of, shop, "1", history.Success, 0)
	want := []string{"1x Object small xxxxxxxxxx to b", "1x Object small a to b", "1x Object large"}
	if diff := cmp.Diff(want, causes(of, "1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAReportSaysSinceWhenItKnows(t *testing.T) {
	t.Parallel()
	of, c := newLog(history.DefaultLimits)
	c.advance(time.Hour)
	of.Note(shop, edit("one", "a", "b"))
	c.advance(time.Hour)
	for range 30 {
		of.Note(shop, edit("one", "a", "b"))
		reconcile(of, shop, "1", history.Success, 0)
	}
	of.Note(shop, edit("two", "a", "b"))
	r, _ := of.Report(shop, "1")
	if !r.Since.Equal(noon.Add(time.Hour)) || r.Total != 30 || len(r.Reconciles) != 10 || len(r.Waiting) != 1 || r.Waiting[0].Name != "two" {
		t.Errorf("since %s, %d reconciles, %d known, waiting %v", r.Since, r.Total, len(r.Reconciles), r.Waiting)
	}
}

func TestALogIsUsedByManyAtOnce(t *testing.T) {
	t.Parallel()
	of, _ := newLog(history.Limits{Resources: 3, Reconciles: 2, Bytes: 1 << 14, Held: 1 << 10})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 500 {
				key := types.NamespacedName{Name: fmt.Sprint((i + j) % 5)}
				of.Note(key, edit(fmt.Sprint(j%3), "a", "b"))
				reconcile(of, key, types.UID(fmt.Sprint(j%2)), history.Error, time.Second)
				of.Retry(key, time.Second)
				_, _ = of.Report(key, "1")
			}
		})
	}
	all.Wait()
}

// BenchmarkNoteAnEvent is what an event costs that enqueues a resource, besides its comparison, which each reconcile makes
// once for each object that has changed.
func BenchmarkNoteAnEvent(b *testing.B) {
	of, _ := newLog(history.DefaultLimits)
	e := edit("one", "a", "b")
	b.ReportAllocs()
	for b.Loop() {
		of.Note(shop, e)
	}
}

// BenchmarkAReconcile is what a reconcile costs that one event has triggered and that sends three requests.
func BenchmarkAReconcile(b *testing.B) {
	of, _ := newLog(history.DefaultLimits)
	e := edit("one", "a", "b")
	b.ReportAllocs()
	for b.Loop() {
		of.Note(shop, e)
		of.NoteDequeued(shop)
		ctx, run := of.Begin(b.Context(), shop, "1")
		for range 3 {
			history.CountRequest(ctx, "apply", "deployments.apps")
		}
		run.End(history.Success, 0, "1")
	}
}
