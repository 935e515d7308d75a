package packages

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/test/machine"
)

func TestAfterARestartWhatWasAcceptedIsServedBeforeWhatIsNew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.apply("p", text("Thing", "a"))
	if err := s.step("p"); err != nil {
		t.Fatal(err)
	}
	s.apply("looping", text("Other", "a"))
	s.restart()
	s.take()
	s.looping = "looping"
	s.Await()
	if _, err := s.Reconcile(t.Context(), types.NamespacedName{Name: "looping"}); err != nil {
		t.Fatal(err)
	}
	s.Expect([]string{"looping", "p"})
	s.exams.mu.Lock()
	waiting := len(s.exams.waiting)
	s.exams.mu.Unlock()
	if waiting != 1 {
		t.Fatal("the check of what is new does not wait")
	}
	// There is one turn at a time, and the check of the other one never ends.
	for deadline := time.Now().Add(machine.Patience); s.ready("p") != "True Served" || s.ServedBy(schema.GroupKind{Group: "example.com", Kind: "Thing"}) != "p"; {
		if time.Now().After(deadline) {
			t.Fatalf("p is not served: %s, %v", s.ready("p"), s.take())
		}
		if _, err := s.Reconcile(t.Context(), types.NamespacedName{Name: "p"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.enqueue:
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := s.forget(t.Context(), "looping"); err != nil {
		t.Fatal(err)
	}
}

func TestAnExaminationThatIsAlwaysEndedIsRepeatedEverMoreSeldom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.ended = errors.New("too slow")
	s.apply("p", text("Thing", "a"))
	var waits []time.Duration
	for range 9 {
		if err := s.step("p"); err != nil {
			t.Fatal(err)
		}
		e := s.states["p"].exams[s.states["p"].content.digest()]
		waits = append(waits, e.again())
		s.now = s.now.Add(e.again())
	}
	m := time.Minute
	want := []time.Duration{5 * m, 10 * m, 20 * m, 40 * m, 80 * m, 160 * m, 320 * m, 360 * m, 360 * m}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestExaminationsBeginInTheOrderOfTheirUrgency(t *testing.T) {
	t.Parallel()
	var q examQueue
	held := true
	isHeld := func() bool { return held }
	order := make(chan string, 10)
	begin := func(name string, u urgency) func() {
		ended := make(chan func(), 1)
		go func() {
			end, err := q.take(t.Context(), q.enter(u), 1, isHeld)
			if err != nil {
				return
			}
			order <- name
			ended <- end
		}()
		return func() { (<-ended)() }
	}
	waits := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			q.mu.Lock()
			have := len(q.waiting)
			q.mu.Unlock()
			if have == n {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d wait, want %d", have, n)
			}
		}
	}
	repeatedOne := begin("repeated", repeated)
	waits(1)
	changedOne := begin("changed", changed)
	waits(2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.take(ctx, q.enter(changed), 1, isHeld); !errors.Is(err, context.Canceled) {
		t.Errorf("what is no longer wanted got a turn: %v", err)
	}
	acceptedOne := begin("accepted", accepted)
	if got := <-order; got != "accepted" {
		t.Errorf("%s began first", got)
	}
	held = false
	acceptedOne()
	changedOne()
	repeatedOne()
	if diff := cmp.Diff([]string{"changed", "repeated"}, []string{<-order, <-order}); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if q.running != 0 || len(q.waiting) != 0 {
		t.Errorf("%d run and %d wait at the end", q.running, len(q.waiting))
	}
}
