package main

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A cost is what a process has used since it started.
type cost struct {
	// own is the processor time without that of workers.
	own time.Duration
	// allocations and bytes are what it has allocated, without its workers. Unlike times, other programs on the
	// machine do not change them.
	allocations, bytes float64
	reconciles         float64
	// evaluations are those by CUE.
	evaluations float64
}

// cost returns what a process has used until now, for resources of a kind.
func (p *process) cost(ctx context.Context, kind schema.GroupVersionKind) (cost, error) {
	out := cost{own: p.OwnCPU()}
	err := p.readMetrics(ctx, func(name string, value float64) {
		switch {
		case name == "go_memstats_mallocs_total":
			out.allocations = value
		case name == "go_memstats_alloc_bytes_total":
			out.bytes = value
		case strings.HasPrefix(name, "controller_runtime_reconcile_total{") && strings.Contains(name, `controller="`+strings.ToLower(kind.Kind)):
			out.reconciles += value
		case strings.HasPrefix(name, "operetta_evaluations_total{") && strings.Contains(name, `="cue"`):
			out.evaluations += value
		}
	})
	return out, err
}

// minus returns what was used since an earlier cost.
func (c cost) minus(o cost) cost {
	return cost{c.own - o.own, c.allocations - o.allocations, c.bytes - o.bytes, c.reconciles - o.reconciles, c.evaluations - o.evaluations}
}

// plus returns the sum of two costs.
func (c cost) plus(o cost) cost { return c.minus(cost{}.minus(o)) }

// half returns one of two.
func (c cost) half() cost {
	return cost{c.own / 2, c.allocations / 2, c.bytes / 2, c.reconciles / 2, c.evaluations / 2}
}

// addCost notes what each resource of a scenario has cost the process of a controller, given what a process had used before.
func (b *bench) addCost(ctx context.Context, scenario string, before cost) error {
	after, err := b.proc.cost(ctx, webApp)
	if err != nil {
		return err
	}
	n, used := float64(b.n), after.minus(before)
	b.add(scenario+"_own_cpu", b.perResource(used.own))
	b.add(scenario+"_allocations", used.allocations/n)
	b.add(scenario+"_bytes", used.bytes/n/(1<<10))
	b.add(scenario+"_reconciles", used.reconciles/n)
	b.add(scenario+"_evaluations", used.evaluations/n)
	return nil
}
