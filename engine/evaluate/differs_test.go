package evaluate_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
)

// A changedBackend is CUE that says something else after a while.
type changedBackend struct {
	evaluate.Backend
	changed bool
}

func (b *changedBackend) Evaluate(ctx context.Context, s program.Session) (program.Rollout, error) {
	r, err := b.Backend.Evaluate(ctx, s)
	if b.changed {
		r.Unstored = "something else"
	}
	return r, err
}

func (b *changedBackend) Confirm(ctx context.Context, s program.Session, expected program.Rollout) (program.Rollout, bool, error) {
	r, confirmed, err := b.Backend.Confirm(ctx, s, expected)
	if b.changed {
		r.Unstored, confirmed = "something else", false
	}
	return r, confirmed, err
}

// A template that differs is dropped, and no other one. At the third time, all of them are.
func TestTemplatesThatDifferFromCUEAreDropped(t *testing.T) {
	t.Parallel()
	p := form{data: "data: a: cr.spec.name"}.load(t)
	b := &changedBackend{Backend: evaluate.InProcess(p)}
	reported, metrics := 0, evaluate.NewMetrics()
	var e *evaluate.Evaluator
	e = evaluate.New(p, evaluate.Options{Backend: b, CheckEvery: 1, Metrics: metrics, Differs: func(context.Context, program.Session) {
		if reported++; !strings.HasSuffix(e.Epoch(), "."+strconv.Itoa(reported)) {
			t.Errorf("the epoch is %q when difference %d is reported", e.Epoch(), reported)
		}
	}})
	say := func(i int, shape string) string {
		t.Helper()
		s := formSession(int64(i), 1)
		s.CR["spec"], s.Config = map[string]any{"name": fmt.Sprint("n", i), "pools": map[string]any{shape: int64(1)}}, nil
		r, err := e.Evaluate(s)
		if err != nil {
			t.Fatal(err)
		}
		return r.Unstored
	}
	for i, shape := range []string{"a", "b", "c", "d", "a", "b", "c", "d"} { // each is compiled, and then compared
		if got := say(i, shape); got != "" || reported > 0 {
			t.Fatalf("session %d: %q, and %d differ", i, got, reported)
		}
	}
	b.changed = true
	for i, row := range []struct {
		reason, shape string
		reported      int
	}{
		{"it differs", "a", 1},
		{"it is not used again", "a", 1},
		{"another one is there still, and differs as well", "b", 2},
		{"and so does a third", "c", 3},
		{"then there are none", "d", 3},
		{"and none is made", "e", 3},
		{"for nothing", "e", 3},
	} {
		if got := say(100+i, row.shape); got != "something else" || reported != row.reported {
			t.Errorf("%s: %q, and %d differ, want %d", row.reason, got, reported, row.reported)
		}
		if got := counted(t, metrics, "template_differences_total")[""]; got != float64(row.reported) {
			t.Errorf("%s: the metric is %v, want %d", row.reason, got, row.reported)
		}
	}
}

// A package may come back to an earlier version, of which an answer was wrong.
func TestTwoEvaluatorsOfAPackageHaveNoEpochInCommon(t *testing.T) {
	t.Parallel()
	p := form{data: "data: a: cr.spec.name"}.load(t)
	if a, b := evaluate.New(p, evaluate.Options{}).Epoch(), evaluate.New(p, evaluate.Options{}).Epoch(); a == b {
		t.Errorf("both have the epoch %q", a)
	}
}
