package plan_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
	"operetta.dev/test/machine"
)

// A counting package counts how often it is evaluated.
type counting struct {
	*evaluate.Evaluator

	n *atomic.Int64
}

func (c counting) Evaluate(s program.Session) (program.Rollout, error) {
	c.n.Add(1)
	return c.Evaluator.Evaluate(s)
}

// A countingBackend counts how often CUE is run.
type countingBackend struct {
	evaluate.Backend

	n *atomic.Int64
}

func (c countingBackend) Evaluate(ctx context.Context, s program.Session) (program.Rollout, error) {
	c.n.Add(1)
	return c.Backend.Evaluate(ctx, s)
}

func (c countingBackend) Confirm(ctx context.Context, s program.Session, expected program.Rollout) (program.Rollout, bool, error) {
	c.n.Add(1)
	return c.Backend.Confirm(ctx, s, expected)
}

func (c countingBackend) Compile(ctx context.Context, s program.Session, pins template.Pins) (compile.Result, error) {
	c.n.Add(1)
	return c.Backend.Compile(ctx, s, pins)
}

// The bounds are what it costs, and less is welcome: time depends on the machine.
func TestAThousandResourcesTakeSoManyEvaluations(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	shops := manyShops(t)
	another := strings.Replace(body, "web:1", "web:2", 1)
	for name, row := range map[string]struct {
		after                  string
		templates              evaluate.Templates
		class                  plan.Class
		evaluations, runsOfCUE int64
	}{
		"nothing changes, as the command plans": {body, evaluate.TemplatesChecked, plan.Unchanged, many, many},
		"nothing changes":                       {body, evaluate.TemplatesOn, plan.Unchanged, many, many / 20},
		"one value":                             {another, evaluate.TemplatesOn, plan.Changed, 4 * many, many / 10},
	} {
		p := load(t, row.after)
		var evaluations, runs atomic.Int64
		by := evaluate.New(p, evaluate.Options{Backend: countingBackend{evaluate.InProcess(p), &runs}, Templates: row.templates})
		told, inOrder := 0, true
		got := make1(t, plan.Options{
			Cluster: shops, New: plan.Version{Program: p, Evaluates: counting{by, &evaluations}}, Parallel: runtime.GOMAXPROCS(0),
			Progress: func(done, all int) {
				told++
				inOrder = inOrder && done == told && all == many
			},
		})
		if told != many || !inOrder {
			t.Errorf("%s: the progress was told %d times (in order: %t), want each of %d resources once", name, told, inOrder, many)
		}
		if n := got.Count(row.class); n != many {
			t.Errorf("%s: %d of %d resources are %s", name, n, many, row.class)
		}
		if evaluations.Load() > row.evaluations || runs.Load() > row.runsOfCUE {
			t.Errorf("%s: %d evaluations, %d by CUE; %d and %d are the budget", name, evaluations.Load(), runs.Load(), row.evaluations, row.runsOfCUE)
		}
		if lines := strings.Count(got.Text(explain.Plain), "\n"); lines > 10 {
			t.Errorf("%s: the plan has %d lines", name, lines)
		}
		t.Logf("%s: %d evaluations, %d by CUE", name, evaluations.Load(), runs.Load())
	}
}
