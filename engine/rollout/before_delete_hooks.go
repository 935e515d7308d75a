package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// BeforeDelete runs the hooks that come before the first object of a deleted resource
// goes, and reports whether the objects may go now. Hooks that can never end must not
// keep a resource for ever, and are skipped: those of a package that cannot be
// evaluated, those in a namespace that is being deleted, and those about objects that
// were never made.
func (e *Engine) BeforeDelete(ctx context.Context, in Input) (result Result, done bool, err error) {
	r := newRun(e, in)
	r.deleting = true
	r.through(ctx, r.observe, r.evaluate, r.plan)
	fault := r.result.Completion.Fault
	switch {
	case len(r.failures) > 0:
		out := Result{Inventory: in.Inventory, HookStates: in.HookStates, Panics: r.result.Panics}
		out.Completion = status.Completion{Deleting: true, Change: status.Unchanged, Fault: fault}
		return out, false, errors.Join(r.failures...)
	case !fault.IsZero() && slices.ContainsFunc(in.Config, tenants):
		// The configuration of the resource itself counts for nothing then: whoever may write
		// it could otherwise skip the hooks with it.
		in.Config = slices.DeleteFunc(slices.Clone(in.Config), tenants)
		return e.BeforeDelete(ctx, in)
	case !fault.IsZero():
		return Result{Inventory: in.Inventory, HookStates: in.HookStates, Events: []Event{HooksSkipped(fault.Message)}}, true, nil
	}
	r.through(ctx, func(ctx context.Context) error { return r.runHooks(ctx, program.BeforeDelete) })
	why := r.hopelessHooks(ctx)
	if why != "" {
		r.result.Events = append(r.result.Events, HooksSkipped(why))
		r.failures, r.result.Completion.Fault = nil, status.Component{}
	}
	out := r.finish()
	out.Completion.Deleting = true
	return out, why != "" || len(r.failures)+len(r.pendingHooks()) == 0, errors.Join(r.failures...)
}

func tenants(l program.Layer) bool { return l.Tenant }

// HooksSkipped is the event that hooks before deletion were skipped.
func HooksSkipped(why string) Event {
	return Event{Reason: "HooksSkipped", Warning: true, Message: "The hooks before deletion were skipped: " + why}
}

// pendingHooks returns the hooks that have not succeeded, in the author's order.
func (r *run) pendingHooks() []status.Component {
	return slices.DeleteFunc(r.components(), status.Component.Done)
}

// hopelessHooks says why none of the hooks that are still to end ever will, or "".
func (r *run) hopelessHooks(ctx context.Context) string {
	pending := r.pendingHooks()
	switch {
	case len(r.failures)+len(pending) == 0:
		return ""
	case r.namespaceGoing(ctx):
		return fmt.Sprintf("namespace %s is being deleted, and nothing can be created in it", r.in.Owner.Namespace)
	case len(r.failures) > 0 || !r.nothingMade():
		return ""
	}
	var awaited []string
	for _, c := range pending {
		if c.Reason != status.ReasonValue && c.Reason != status.ReasonUndecided {
			return ""
		}
		awaited = append(awaited, c.Name+": "+c.Message)
	}
	return "nothing of the resource was ever created; " + strings.Join(awaited, "; ")
}

// namespaceGoing reports whether the resource's namespace is being deleted. Nothing
// can be created in it any more, and what a hook reads may be gone already. An
// operator that may not read namespaces learns it from the refusal.
func (r *run) namespaceGoing(ctx context.Context) bool {
	if r.in.Owner.Namespace == "" {
		return false
	}
	if slices.ContainsFunc(r.failures, func(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }) {
		return true
	}
	u, err := r.Cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Name: r.in.Owner.Namespace})
	return err == nil && u != nil && u.GetDeletionTimestamp() != nil
}

// nothingMade reports whether no component has ever been applied, as far as is known:
// then nothing that a hook refers to will come any more.
func (r *run) nothingMade() bool {
	for _, g := range r.in.Inventory {
		hook := slices.ContainsFunc(r.rollout.Hooks, func(h program.Hook) bool { return h.Component.Name == g.Component })
		applied := slices.ContainsFunc(g.Objects, func(e ownership.Entry) bool { return e.Digest != "" })
		if !hook && (applied || len(r.live[g.Component]) > 0) {
			return false
		}
	}
	return true
}
