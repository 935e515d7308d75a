package rollout

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// An inputUse notes which inputs a rollout refers to.
type inputUse struct {
	// asked are those that it has tried to read.
	asked []program.Input
	// decided are those of the last evaluation that has succeeded and whose inputs were read; nil means
	// there was none.
	decided *[]program.Input
	// failed says that a later evaluation has failed, or that its inputs could not be read.
	failed bool
}

// ask notes that an input is about to be read. Whatever reads it watches it from then on.
func (u *inputUse) ask(i program.Input) {
	same := func(other program.Input) bool { return reflect.DeepEqual(SelectionOf(i), SelectionOf(other)) }
	if !slices.ContainsFunc(u.asked, same) {
		u.asked = append(u.asked, i)
	}
}

// watchInputs says which inputs the rollout refers to in the end. One that has failed refers to what it
// has asked for, too: that may be what it waits for.
func (obs *observed) watchInputs() {
	if obs.WatchInputs == nil {
		return
	}
	owner := types.NamespacedName{Namespace: obs.in.Owner.Namespace, Name: obs.in.Owner.Name}
	if obs.use.decided != nil {
		obs.WatchInputs(owner, *obs.use.decided, false)
	}
	if obs.use.decided == nil || obs.use.failed {
		obs.WatchInputs(owner, append(slices.Clone(obs.in.ConfigInputs), obs.use.asked...), true)
	}
}

// readInputs reads the inputs of the package, and reports whether they differ from those
// that were read before. What an input selects is read once in a rollout: other clients may change it all
// the time, and each change would be evaluated.
func (obs *observed) readInputs(ctx context.Context, inputs []program.Input) (bool, error) {
	changed, watched, err := obs.readAll(ctx, inputs)
	switch {
	case err != nil:
		obs.use.failed = true
	case !changed && !obs.use.failed:
		obs.use.decided = &watched
	}
	return changed, err
}

// readAll reads the inputs of the package, reports whether they differ from those that were read before, and returns
// which are to be watched.
func (obs *observed) readAll(ctx context.Context, inputs []program.Input) (bool, []program.Input, error) {
	found := map[string]program.FoundInput{}
	watched := slices.Clone(obs.in.ConfigInputs)
	for _, i := range inputs {
		if i.Missing != "" {
			continue // the components that use it say what it waits for
		}
		i, readable, err := obs.placed(ctx, i)
		if err != nil {
			return false, nil, err
		}
		if !readable {
			continue
		}
		obs.use.ask(i)
		f, err := obs.readInput(ctx, i)
		if err != nil {
			return false, nil, fmt.Errorf("input %s: %w", i.Name, err)
		}
		found[i.Name] = f
		watched = append(watched, i)
	}
	changed := !sameFound(obs.found, found)
	obs.found = found
	return changed, watched, nil
}

// readInput returns the objects of an input. If this rollout has written the one that is named, that
// is what the API server has answered: the cache may not have it yet.
func (obs *observed) readInput(ctx context.Context, i program.Input) (program.FoundInput, error) {
	selection := SelectionOf(i)
	key := fmt.Sprint(selection)
	f, known := obs.read[key]
	if !known {
		var err error
		if f, err = ReadInput(ctx, obs.Cluster, i); err != nil {
			return f, err
		}
		obs.read[key] = f
	}
	if u := obs.written[(cluster.Ref{GroupVersionKind: i.Kind, Namespace: i.Namespace, Name: i.Object}).Identity()]; u != nil && !f.Several {
		f.Objects = []map[string]any{u.Object}
	}
	for _, o := range f.Objects {
		obs.in.Redactor.Add(o)
	}
	return f, nil
}

// SelectionOf returns which objects an input selects.
func SelectionOf(in program.Input) cluster.Selection {
	return cluster.Selection{Kind: in.Kind, Namespace: in.Namespace, Name: in.Object, Labels: in.Selector}
}

// ReadInput returns the objects of an input, from the cache.
func ReadInput(ctx context.Context, from cluster.Cluster, in program.Input) (program.FoundInput, error) {
	out := program.FoundInput{Several: in.Object == ""}
	found, err := from.ListCached(ctx, SelectionOf(in))
	for _, u := range found {
		out.Objects = append(out.Objects, u.Object)
	}
	return out, err
}

// placed returns an input with its namespace, and whether it can be read. An input of a
// kind that is not served has no objects. An input out of the resource's reach is an error
// of the package: a user who can write the resource could otherwise read what they may not
// see themselves.
func (obs *observed) placed(ctx context.Context, i program.Input) (program.Input, bool, error) {
	scope, err := obs.Cluster.Scope(ctx, i.Kind)
	if cluster.IsKindNotServed(err) {
		obs.unread[i.Name] = err.Error()
		return i, false, nil
	}
	if err != nil {
		return i, false, fmt.Errorf("input %s: %w", i.Name, err)
	}
	delete(obs.unread, i.Name)
	if scope == cluster.ClusterScoped {
		i.Namespace = ""
		return i, true, nil // cluster-scoped objects have no namespace to reach into
	}
	if i.Namespace == "" {
		i.Namespace = obs.in.Owner.Namespace
	}
	if err := obs.Reach.MayRead(obs.in.Owner.Namespace, i.Kind.GroupKind(), i.Namespace); err != nil {
		return i, false, stopAt(i.Position, status.ReasonInvalidPackage, fmt.Sprintf("input %s: %s (%s)", i.Name, err, i.Position))
	}
	return i, true, nil
}

// sameFound compares what was found by UID and resourceVersion.
func sameFound(a, b map[string]program.FoundInput) bool {
	return maps.EqualFunc(a, b, func(a, b program.FoundInput) bool {
		return a.Several == b.Several && slices.EqualFunc(a.Objects, b.Objects, func(a, b map[string]any) bool {
			x, y := unstructured.Unstructured{Object: a}, unstructured.Unstructured{Object: b}
			return x.GetUID() == y.GetUID() && x.GetResourceVersion() == y.GetResourceVersion()
		})
	})
}
