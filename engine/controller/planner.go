package controller

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/worker"
)

// A planner plans versions of packages over the live resources of the cluster of a manager. It reads the API server
// and starts no watch: a version that is held back must not leave one behind.
type planner struct{ manager *Manager }

var _ packages.Planner = planner{}

// Plan implements packages.Planner.
func (p planner) Plan(ctx context.Context, as object.Account, served *packages.Candidate, next packages.Candidate, progress func(done, all int)) (packages.Impact, error) {
	m := p.manager
	ctx = logr.NewContext(worker.WithPlan(ctx), logr.Discard()) // what happens in memory has not happened
	namespaces := m.options.Namespaces
	if next.Program.Meta().ClusterScoped {
		namespaces = nil
	}
	by, done, err := m.identityOf(as)
	if err != nil {
		return packages.Impact{}, err
	}
	defer done()
	direct := &cluster.Live{Client: by.caches.Direct, Direct: by.caches.Direct, Kinds: cluster.Kinds(m.manager.GetConfig())}
	o := plan.Options{
		Cluster: selectedResources{plan.NewLive(direct, namespaces), m.options.Selector}, Namespaces: namespaces, ConfigMap: m.options.ConfigMap, Now: time.Now(), Progress: progress, Complete: true, AssumeNamespaces: true,
		New: plannedVersion(ctx, m.prepare(next.Program), next),
	}
	if served != nil {
		old := plannedVersion(ctx, m.evaluatorOf(served.Program), *served)
		o.Old = &old
	}
	made, err := plan.Make(ctx, o)
	if err != nil {
		return packages.Impact{}, err
	}
	return impactOf(made), nil
}

// plannedVersion returns a version of a package for a plan.
func plannedVersion(ctx context.Context, by *evaluate.Evaluator, c packages.Candidate) plan.Version {
	return plan.Version{Program: c.Program, Evaluates: boundPackage{by, ctx}, CRD: c.CRD}
}

// impactOf returns what a plan deletes and recreates.
func impactOf(p plan.Plan) packages.Impact {
	out := packages.Impact{Resources: len(p.Resources)}
	for _, r := range p.Resources {
		resource := plan.Object{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}.String()
		if r.Undecided.Passes() && out.Incomplete == "" {
			out.Incomplete = resource
			if len(r.Problems) > 0 {
				out.Incomplete += ": " + r.Problems[0].String()
			}
		}
		for _, o := range r.Objects {
			switch o.Outcome {
			case dryrun.Deleted, plan.Delayed:
				out.Deleted++
			case dryrun.Recreated:
				out.Recreated++
			case plan.Undecided:
				out.Undecided++
			case dryrun.Created, dryrun.Updated, plan.Orphaned:
				continue
			}
			if len(out.Objects) < packages.MaxImpactObjects {
				out.Objects = append(out.Objects, packages.ImpactObject{Object: o.String(), Resource: resource, Outcome: string(o.Outcome)})
			}
		}
	}
	return out
}

// A boundPackage is a package that is evaluated within a context.
type boundPackage struct {
	*evaluate.Evaluator

	ctx context.Context //nolint:containedctx // one reconcile or plan has it, and rollout.Evaluator takes none
}

var _ reconcile.Package = boundPackage{}

// Evaluate implements rollout.Evaluator.
func (p boundPackage) Evaluate(s program.Session) (program.Rollout, error) {
	return p.EvaluateContext(p.ctx, s)
}

// Locate implements rollout.Locator.
func (p boundPackage) Locate(s program.Session, component, object, path string) fault.Position {
	return p.LocateContext(p.ctx, s, component, object, path)
}

// prepare returns the evaluator of a version that may be served next, so that the templates that a plan has made serve
// then. Only the last one is remembered: one plan is made at a time.
func (m *Manager) prepare(p *program.Program) *evaluate.Evaluator {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prepared == nil || m.prepared.Program != p {
		m.prepared = evaluate.New(p, m.evaluateOptions(p))
	}
	return m.prepared
}

// takePrepared returns the evaluator of a version that is served from now on.
func (m *Manager) takePrepared(p *program.Program) *evaluate.Evaluator {
	m.mu.Lock()
	defer m.mu.Unlock()
	if out := m.prepared; out != nil && out.Program == p {
		m.prepared = nil
		return out
	}
	return evaluate.New(p, m.evaluateOptions(p))
}

// evaluatorOf returns the evaluator of a version that is served.
func (m *Manager) evaluatorOf(p *program.Program) *evaluate.Evaluator {
	if c, err := m.controllerOf(p); err == nil {
		if by := c.program.Load(); by.Program == p {
			return by
		}
	}
	return evaluate.New(p, m.evaluateOptions(p))
}
