package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/controller/metrics"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// outcome is what a step returns.
type outcome struct {
	again time.Duration
	err   error
}

// delays runs a controller of one resource whose steps have some outcomes, the last
// of them forever, and returns the times between so many steps. It has to run in a
// bubble of synctest.
func delays(t *testing.T, outcomes []outcome, steps int) []time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := make(chan time.Time, steps+1)
	taken := 0
	p := newBackoffReconciler(func(context.Context, types.NamespacedName) (time.Duration, error) {
		o := outcomes[min(taken, len(outcomes)-1)]
		if taken++; taken <= steps+1 {
			began <- time.Now()
		}
		return o.again, o.err
	}, newRunningReconciles(0), "Shop", nil, metrics.New().Controller("shops"))
	c, err := controller.NewTypedUnmanaged("test", controller.TypedOptions[ctrl.Request]{
		Reconciler: p, RateLimiter: p, MaxConcurrentReconciles: 1, SkipNameValidation: new(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: "shop"}})
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- c.Start(ctx) }()
	var out []time.Duration
	for last := <-began; len(out) < steps; {
		next := <-began
		out = append(out, next.Sub(last).Round(time.Millisecond))
		last = next
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return out
}

func TestWhatFailsIsTriedAgainInTimeForItsTimers(t *testing.T) {
	t.Parallel()
	const s = time.Second
	broken := errors.New("refused")
	for name, row := range map[string]struct {
		reason   string
		outcomes []outcome
		want     []time.Duration
	}{
		"a failure": {
			"one second, doubling to five minutes",
			[]outcome{{0, broken}}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 128 * s, 256 * s, 300 * s, 300 * s},
		},
		"a failure beside a timer": {
			"the timer of another component is not put off",
			[]outcome{{5 * s, broken}}, []time.Duration{s, 2 * s, 4 * s, 5 * s, 5 * s, 5 * s},
		},
		"a timer that is later than the next try": {
			"the failure is tried again as soon as without it",
			[]outcome{{time.Hour, broken}}, []time.Duration{s, 2 * s, 4 * s, 8 * s},
		},
		"a timer that ends": {
			"it counts for the step that asked for it, and no other",
			[]outcome{{s, broken}, {s, broken}, {s, broken}, {0, broken}}, []time.Duration{s, s, s, 8 * s, 16 * s},
		},
		"success": {
			"the next failure begins anew, and what waited for a timer waits as long as it says",
			[]outcome{{0, broken}, {0, broken}, {30 * s, nil}, {0, broken}}, []time.Duration{s, 2 * s, 30 * s, s, 2 * s},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if diff := cmp.Diff(row.want, delays(t, row.outcomes, len(row.want))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", row.reason, diff)
				}
			})
		})
	}
}
