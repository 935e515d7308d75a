package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// HookStates are how the hooks of a resource ended, by name. The entry deletionBegun belongs to
// no hook: it is Verified once the objects may be deleted, and Waiting while it is not known
// whether hooks come before that.
type HookStates map[string]HookState

const (
	deletionBegun = "hooks." + string(program.BeforeDelete)
	// beforeDeletePrefix begins the names of the hooks before deletion.
	beforeDeletePrefix = deletionBegun + "."
)

// DeletionBegun reports whether the objects may be deleted: the hooks before deletion have run
// or were skipped, and do not run again.
func (h HookStates) DeletionBegun() bool { return h[deletionBegun].State == status.Verified }

// WithDeletionBegun returns the states with the note that the objects may be deleted. It has to
// be stored before the first deletion: a crash must not run or skip a hook twice.
func (h HookStates) WithDeletionBegun() HookStates { return h.withDeletion(status.Verified) }

// WithHooksUnknown returns the states with the note that hooks before deletion may be missing in
// them, because the status was lost.
func (h HookStates) WithHooksUnknown() HookStates { return h.withDeletion(status.Waiting) }

func (h HookStates) withDeletion(state status.State) HookStates {
	out := HookStates{}
	maps.Copy(out, h)
	out[deletionBegun] = HookState{State: state}
	return out
}

// BeforeDeletion returns why the objects of an inventory must not be deleted without the
// package, as the start of a sentence, or "" if they may.
func (h HookStates) BeforeDeletion(inventory ownership.Inventory) string {
	switch {
	case h.DeletionBegun():
		return ""
	case h[deletionBegun].State == status.Waiting && inventory.Len() > 0:
		return "its status was lost, and with it whether hooks come before its deletion"
	}
	var due []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if strings.HasPrefix(name, beforeDeletePrefix) && h[name].State != status.Verified {
			due = append(due, name)
		}
	}
	if len(due) == 0 {
		return ""
	}
	return strings.Join(due, ", ") + " must run first"
}

// BeforeDelete runs the hooks that come before the first object of a deleted resource is
// deleted, and reports whether the objects may be deleted now. Hooks that can never end must
// not keep a resource forever, so these are skipped: those of a package that cannot be
// evaluated, those in a namespace that is being deleted, and those that wait for objects that
// were never created.
func (e *Engine) BeforeDelete(ctx context.Context, in Input) (result Result, done bool, err error) {
	r := newRun(ctx, e, in)
	r.deleting = true
	r.runUntilFault(ctx, r.observe, r.evaluate, r.plan)
	r.watchInputs()
	fault := r.result.Completion.Fault
	switch {
	case len(r.failures) > 0:
		out := Result{Inventory: in.Inventory, HookStates: in.HookStates, Panics: r.result.Panics}
		out.Completion = status.Completion{Deleting: true, Change: status.Unchanged, Fault: fault}
		return out, false, errors.Join(r.failures...)
	case !fault.IsZero() && slices.ContainsFunc(in.Config, tenants):
		// A user who can write the resource could skip the hooks by its configuration, so the
		// package is evaluated once more without that.
		in.Config = slices.DeleteFunc(slices.Clone(in.Config), tenants)
		return e.BeforeDelete(ctx, in)
	case !fault.IsZero():
		return SkipHooks(in.Inventory, in.HookStates, fault.Message), true, nil
	}
	r.runUntilFault(ctx, func(ctx context.Context) error { return r.runHooks(ctx, program.BeforeDelete) })
	r.watchInputs()
	pending := slices.DeleteFunc(r.components(), status.Component.Done)
	why := r.whyHooksNeverEnd(ctx, pending)
	if why != "" {
		r.result.Events = append(r.result.Events, hooksSkipped(why))
		r.failures, r.result.Completion.Fault = nil, status.Component{}
	}
	out := r.finish()
	out.Completion.Deleting = true
	return out, why != "" || len(r.failures)+len(pending) == 0, errors.Join(r.failures...)
}

func tenants(l program.Layer) bool { return l.Tenant }

// SkipHooks returns the result of a resource whose hooks before deletion are skipped, with the
// event that says why.
func SkipHooks(inventory ownership.Inventory, states HookStates, why string) Result {
	return Result{Inventory: inventory, HookStates: states, Events: []Event{hooksSkipped(why)}}
}

func hooksSkipped(why string) Event {
	return Event{Reason: "HooksSkipped", Warning: true, Message: "The hooks before deletion were skipped: " + why}
}

// whyHooksNeverEnd returns why hooks that have not ended never will, or "".
func (r *run) whyHooksNeverEnd(ctx context.Context, pending []status.Component) string {
	switch {
	case len(r.failures)+len(pending) == 0:
		return ""
	case r.namespaceTerminating(ctx):
		return fmt.Sprintf("namespace %s is being deleted, and nothing can be created in it", r.in.Owner.Namespace)
	case len(r.failures) > 0 || !r.neverApplied():
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

// namespaceTerminating reports whether the resource's namespace is being deleted: nothing can be
// created in it, and what a hook reads may be gone. An operator that may not read namespaces
// learns it when a write is refused.
func (r *run) namespaceTerminating(ctx context.Context) bool {
	if r.in.Owner.Namespace == "" {
		return false
	}
	if slices.ContainsFunc(r.failures, func(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }) {
		return true
	}
	u, err := r.Cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Name: r.in.Owner.Namespace})
	return err == nil && u != nil && u.GetDeletionTimestamp() != nil
}

// neverApplied reports whether no component was ever applied, as far as the inventory knows:
// nothing that a hook refers to will ever exist.
func (r *run) neverApplied() bool {
	return !slices.ContainsFunc(r.in.Inventory, func(g ownership.Group) bool {
		hook := slices.ContainsFunc(r.rollout.Hooks, func(h program.Hook) bool { return h.Component.Name == g.Component })
		applied := slices.ContainsFunc(g.Objects, func(e ownership.Entry) bool { return e.Digest != "" })
		return !hook && (applied || len(r.live[g.Component]) > 0)
	})
}
