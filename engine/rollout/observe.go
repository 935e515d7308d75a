package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// place is where an object belongs in a package, and which one it is.
type place struct {
	component, object string
	ref               cluster.Ref
}

// observe reads the live objects that the inventory names.
func (r *run) observe(ctx context.Context) error {
	var places []place
	for _, g := range r.inventory {
		for _, e := range g.Objects {
			places = append(places, place{g.Component, e.Object, e.Ref(r.in.Owner.Namespace)})
		}
	}
	if _, err := r.look(ctx, places); err != nil {
		return err
	}
	r.remember()
	return nil
}

// parallelReads is how many objects are read at once. Reads come from memory; only
// the first of a kind has to wait for a watch, and those wait side by side.
const parallelReads = 16

// look reads objects and records those that are the resource's own. It reports
// whether that changes what the package sees.
func (r *run) look(ctx context.Context, places []place) (bool, error) {
	found := make([]*unstructured.Unstructured, len(places))
	failures := make([]error, len(places))
	group := errgroup.Group{}
	group.SetLimit(parallelReads)
	for i, p := range places {
		group.Go(func() error {
			failures[i] = guarded(func() error {
				u, err := r.Cluster.GetCached(ctx, p.ref)
				if cluster.IsKindNotServed(err) {
					return nil // such a kind has no objects
				}
				found[i] = u
				return err
			})
			return nil
		})
	}
	_ = group.Wait() // the first in time to fail would be another one each time
	if err := unread(failures); err != nil {
		return false, err
	}
	changed := false
	for i, p := range places {
		known := r.live[p.component][p.object]
		r.see(p.component, p.object, found[i])
		changed = changed || r.live[p.component][p.object] != known
	}
	return changed, nil
}

// unread returns what has to be known of failed reads: each kind that cannot be read,
// in the order of the objects, or else the first error.
func unread(failures []error) error {
	var kinds []error
	seen := map[schema.GroupVersionKind]bool{}
	for _, err := range failures {
		if e, ok := errors.AsType[*cluster.KindUnreadableError](err); ok && !seen[e.Kind] {
			seen[e.Kind] = true
			kinds = append(kinds, e)
		}
	}
	if len(kinds) > 0 {
		return errors.Join(kinds...)
	}
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// see records a live object if it is the resource's own: a package never sees
// the objects of others under its names.
func (r *run) see(component, object string, u *unstructured.Unstructured) {
	situation, _ := ownership.Classify(u, r.in.Owner)
	if (situation != ownership.Owned && situation != ownership.Terminating) || (situation == ownership.Terminating && r.isGone(u)) {
		delete(r.live[component], object)
		return
	}
	r.in.Redactor.Add(u.Object)
	if r.live[component] == nil {
		r.live[component] = map[string]*unstructured.Unstructured{}
	}
	r.live[component][object] = u
}

// evaluate evaluates the package, and again as long as that reveals what was not
// seen before: objects that exist already, since after a lost status the first
// evaluation knows none, and inputs, which the resource names. What is undecided may
// be decided by those.
func (r *run) evaluate(ctx context.Context) error {
	for range maxRounds {
		undecided := r.evaluateOnce(ctx)
		if undecided != nil && len(r.rollout.Inputs) == 0 {
			return undecided
		}
		found, err := r.discover(ctx)
		if err != nil {
			return err
		}
		read, err := r.readInputs(ctx)
		if err != nil {
			return err
		}
		if !r.compareGone(ctx) && !found && !read {
			return undecided
		}
		r.result.Completion.Fault = status.Component{}
	}
	r.fault(status.ReasonInvalidPackage, "the rendered identities keep changing with what is observed; an object's name must not depend on that object")
	return errStop
}

// maxRounds bounds how often one evaluation may reveal more. Each round but the
// last finds at least one component's objects.
const maxRounds = 100

// session is what the package sees now.
func (r *run) session() program.Session {
	return program.Session{CR: r.in.CR, Live: r.seen(), Inputs: r.found, Config: r.in.Config}
}

func (r *run) evaluateOnce(ctx context.Context) error {
	out, err := r.Package.Evaluate(r.session())
	if err != nil {
		r.rollout.Inputs = out.Inputs
		return r.evaluationFailed(err)
	}
	r.rollout = out
	switch {
	case len(out.Invalid) > 0:
		r.fault(status.ReasonInvalidSpec, oneLine(out.Invalid.Error()))
		return errStop
	case len(out.Misconfigured) > 0:
		r.fault(status.ReasonInvalidConfig, oneLine(out.Misconfigured.Error()))
		return errStop
	}
	if err := r.patch(ctx); err != nil {
		return err
	}
	r.know()
	return nil
}

// know makes the Secrets that are rendered known, and the names that are said of what
// is rendered.
func (r *run) know() {
	all := slices.Clone(r.rollout.Components)
	for _, h := range r.rollout.Hooks {
		all = append(all, h.Component)
	}
	for _, c := range all {
		r.in.Redactor.AllowNames(c.Name)
		for _, o := range c.Objects {
			if !o.NamedBySecret { // the gap says nothing to those who have not chosen the name
				r.in.Redactor.AllowNames(o.Name, o.Identity.Kind, o.Identity.Name, o.Identity.Namespace)
			}
			r.in.Redactor.Add(o.Manifest)
		}
	}
}

// evaluationFailed reports an evaluation without a result. Nothing is tried again
// for it: the same package says the same to the same resource.
func (r *run) evaluationFailed(err error) error {
	if panicked, ok := errors.AsType[*program.PanicError](err); ok {
		r.result.Detail = string(panicked.Stack)
		r.fault(status.ReasonEvaluationFailed, oneLine(err.Error()))
		return errStop
	}
	if limit, over := errors.AsType[*program.LimitError](err); over {
		reason := status.ReasonEvaluationLimit
		if limit.TooSlow {
			reason = status.ReasonEvaluationTooSlow
		}
		r.fault(reason, limit.Error())
		return errStop
	}
	r.fault(status.ReasonInvalidPackage, oneLine(err.Error()))
	return errStop
}

// readInputs reads what the package reads, and reports whether it sees something
// else than before.
func (r *run) readInputs(ctx context.Context) (bool, error) {
	owner := types.NamespacedName{Namespace: r.in.Owner.Namespace, Name: r.in.Owner.Name}
	found := map[string]program.Found{}
	refers := slices.Clone(r.in.ConfigInputs)
	for _, i := range r.rollout.Inputs {
		if i.Missing != "" {
			continue // the components that use it say what it waits for
		}
		i, readable, err := r.placed(ctx, i)
		if err != nil {
			return false, err
		}
		if !readable {
			continue
		}
		f, err := Read(ctx, r.Cluster, i)
		if err != nil {
			return false, fmt.Errorf("input %s: %w", i.Name, err)
		}
		for _, o := range f.Objects {
			r.in.Redactor.Add(o)
		}
		found[i.Name] = f
		refers = append(refers, i)
	}
	changed := !sameFound(r.found, found)
	r.found = found
	if !changed && r.Refer != nil {
		r.Refer(owner, refers)
	}
	return changed, nil
}

// SelectionOf returns which objects an input is.
func SelectionOf(in program.Input) cluster.Selection {
	return cluster.Selection{Kind: in.Kind, Namespace: in.Namespace, Name: in.Object, Labels: in.Selector}
}

// Read returns what a cluster has of an input.
func Read(ctx context.Context, from cluster.Cluster, in program.Input) (program.Found, error) {
	out := program.Found{Several: in.Object == ""}
	found, err := from.ListCached(ctx, SelectionOf(in))
	for _, u := range found {
		out.Objects = append(out.Objects, u.Object)
	}
	return out, err
}

// placed returns an input with its namespace, and whether it can be read. One of a
// kind that is not served has no objects; one that is out of the resource's reach is
// an error of the package: whoever may write the resource could otherwise read what
// they may not see themselves.
func (r *run) placed(ctx context.Context, i program.Input) (program.Input, bool, error) {
	scope, err := r.Cluster.Scope(ctx, i.Kind)
	if cluster.IsKindNotServed(err) {
		r.unread[i.Name] = err.Error()
		return i, false, nil
	}
	if err != nil {
		return i, false, fmt.Errorf("input %s: %w", i.Name, err)
	}
	delete(r.unread, i.Name)
	if scope == cluster.ClusterScoped {
		i.Namespace = ""
		return i, true, nil // cluster-scoped objects are read by everybody who knows them
	}
	if i.Namespace == "" {
		i.Namespace = r.in.Owner.Namespace
	}
	if err := r.Reach.MayRead(r.in.Owner.Namespace, i.Kind.GroupKind(), i.Namespace); err != nil {
		r.fault(status.ReasonInvalidPackage, fmt.Sprintf("input %s: %s (%s)", i.Name, err, i.Position))
		return i, false, errStop
	}
	return i, true, nil
}

// sameFound compares what was found by identity and version.
func sameFound(a, b map[string]program.Found) bool {
	return maps.EqualFunc(a, b, func(a, b program.Found) bool {
		return a.Several == b.Several && slices.EqualFunc(a.Objects, b.Objects, func(a, b map[string]any) bool {
			x, y := unstructured.Unstructured{Object: a}, unstructured.Unstructured{Object: b}
			return x.GetUID() == y.GetUID() && x.GetResourceVersion() == y.GetResourceVersion()
		})
	})
}

// discover reads rendered objects that are not known yet, or known by another
// identity: a renamed object is another object. It reports whether that changes
// what the package sees.
func (r *run) discover(ctx context.Context) (bool, error) {
	var places []place
	for _, c := range r.rollout.Components {
		for _, o := range c.Objects {
			known := r.live[c.Name][o.Name]
			ref := r.refOf(ctx, o)
			if o.Identity.Known() && (known == nil || cluster.RefOf(known).Identity() != ref.Identity()) {
				places = append(places, place{c.Name, o.Name, ref})
			}
		}
	}
	return r.look(ctx, places)
}

// refOf returns the identity of an object.
func (r *run) refOf(ctx context.Context, o program.Object) cluster.Ref {
	return ownership.RefOf(o, r.in.Owner.Namespace, r.scopeOf(ctx, o))
}

// scopeOf returns the scope of an object's kind. One that is not served is taken
// for namespaced until it is; nothing is written before.
func (r *run) scopeOf(ctx context.Context, o program.Object) cluster.Scope {
	scope, err := r.Cluster.Scope(ctx, o.Identity.GroupVersionKind())
	if err != nil {
		return cluster.Namespaced
	}
	return scope
}

// seen returns the live objects as the program takes them, and those that have ended
// and are gone, but for those of hidden components.
func (r *run) seen() map[string]map[string]map[string]any {
	out := make(map[string]map[string]map[string]any, len(r.live))
	see := func(component, object string, u *unstructured.Unstructured) {
		if _, hidden := r.hidden[component]; hidden {
			return
		}
		if out[component] == nil {
			out[component] = map[string]map[string]any{}
		}
		out[component][object] = u.Object
	}
	for _, g := range r.gone {
		see(g.component, g.object, g.seen)
	}
	for component, objects := range r.live {
		for name, u := range objects {
			see(component, name, u)
		}
	}
	return out
}
