package dryrun

import (
	"context"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/faulty"
)

// Controllers say when the simulated controllers of Kubernetes act.
type Controllers string

// When controllers act.
const (
	// ActPromptly is after each reconcile.
	ActPromptly Controllers = ""
	// ActAtRest is when no operator has anything to do.
	ActAtRest Controllers = "at rest"
	// ActAfterWrites is after each write of an operator, and so within reconciles.
	ActAfterWrites Controllers = "after writes"
	// ActNever is never.
	ActNever Controllers = "never"
)

// SetControllers sets when the simulated controllers act from now on.
func (w *World) SetControllers(c Controllers) {
	w.controllers, w.settled = c, false
}

// AfterWrite sets what happens after each write of an operator that was carried out, within its reconcile; nil is
// nothing.
func (w *World) AfterWrite(do func()) { w.afterWrite = do }

// wrote is called after each write.
func (w *World) wrote() {
	if w.controllers == ActAfterWrites {
		w.simulateOnce()
	}
	if w.afterWrite != nil {
		w.afterWrite()
	}
}

// Seen is the cluster as the operators see it, where writes can be made to fail and caches to be stale. An operator
// that dies is started anew after the reconcile.
func (w *World) Seen() *faulty.Cluster { return w.seen }

// AllowAnnotations makes administrative annotations count for the operators from now on.
func (w *World) AllowAnnotations(names []string) {
	for _, o := range w.operators {
		o.Allow = names
	}
}

// Round reconciles every resource once, and shows each step in which something changed. It errors if the context ends.
func (w *World) Round(ctx context.Context, show func(Step)) error {
	w.round(ctx, show)
	return ctx.Err()
}

// Restarts returns how many times the operators have been started anew because they had died.
func (w *World) Restarts() int { return w.restarts }

// restart replaces the operators by those of a new process, which remembers nothing.
func (w *World) restart() {
	w.seen.Restart()
	w.restarts++
	for i, o := range w.operators {
		fresh := w.reconciler(o.ConfigMap)
		complete(fresh, o.Kind, o.clock)
		w.operators[i].Reconciler = fresh
	}
}

// simulateControllers lets the simulated controllers act, and returns the objects that they have changed.
func (w *World) simulateControllers() []cluster.Ref {
	w.simulateOnce()
	var out []cluster.Ref
	for _, e := range w.next() {
		out = append(out, e.Ref)
	}
	return out
}
