package explain

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/verify"
)

// parallelReads is how many objects are read at a time.
const parallelReads = 8

// A Reader reads what an explanation needs. Each object costs a request, and a workload that is not ready
// costs a list of pods, and a request for each object that its pod refers to.
type Reader struct {
	// Cluster is read live, and never written.
	Cluster interface {
		GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error)
		ListLive(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error)
	}
	// Operator is asked about the last reconciles; nil asks none.
	Operator Operator
}

// Read explains a custom resource. It errors if the resource does not exist or cannot be read, or the context ends; what
// else cannot be read is part of the explanation.
func (r Reader) Read(ctx context.Context, ref object.Ref) (Resource, error) {
	u, err := r.Cluster.GetLive(ctx, ref)
	if err != nil {
		return Resource{}, err
	}
	if u == nil {
		return Resource{}, &NotFoundError{Ref: ref}
	}
	out, inventory := describe(u)
	r.ask(ctx, &out, object.RefOf(u))
	var mu sync.Mutex
	writes := writeOf(u)
	owner := ownership.Owner{Ref: object.RefOf(u), UID: u.GetUID()}.WithInventory(inventory)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for _, g := range inventory {
		at := slices.IndexFunc(out.Components, func(c Component) bool { return c.Name == g.Component })
		objects := make([]Object, len(g.Objects))
		out.Components[at].Objects = objects
		for i, e := range g.Objects {
			group.Go(func() error {
				var wrote []Write
				objects[i], wrote = r.object(ctx, e, owner)
				mu.Lock()
				defer mu.Unlock()
				writes = append(writes, wrote...)
				return ctx.Err()
			})
		}
	}
	err = group.Wait()
	out.Writes = newest(writes)
	return out, err
}

// A NotFoundError is that of a custom resource that does not exist.
type NotFoundError struct{ Ref object.Ref }

// Error names the resource.
func (e *NotFoundError) Error() string { return e.Ref.String() + " does not exist" }

// object explains an object of an inventory, and returns the last write to it.
func (r Reader) object(ctx context.Context, e ownership.Entry, owner ownership.Owner) (Object, []Write) {
	ref := e.Ref(owner.Namespace)
	live, err := r.Cluster.GetLive(ctx, ref)
	switch {
	case err != nil:
		return objectOf(ref, Unreadable, err.Error()), nil
	case live == nil:
		return objectOf(ref, Missing, ""), nil
	}
	// The inventory grows before the first write, so it names objects that turn out to be of somebody else.
	if whose := foreign(live, owner); whose != "" {
		return objectOf(ref, Foreign, whose), writeOf(live)
	}
	if live.GetDeletionTimestamp() != nil {
		return objectOf(ref, Deleting, finalizers(live)), writeOf(live)
	}
	out := judged(ref, live)
	if out.Health != Ready {
		out.Causes = r.causes(ctx, live)
	}
	return out, writeOf(live)
}

// foreign says whom an object belongs to that is not the resource's own, or "". Nothing is said of one that only lost
// its marks: the operator puts them back.
func foreign(live *unstructured.Unstructured, owner ownership.Owner) string {
	switch situation, whose := ownership.ClassifyOwnership(live, owner); situation {
	case ownership.Foreign:
		return "belongs to " + whose
	case ownership.Predecessor:
		return fmt.Sprintf("belongs to a deleted %s of the same name, and is about to be garbage-collected", owner.Kind)
	case ownership.Absent, ownership.Owned, ownership.Terminating, ownership.Unproven, ownership.OutOfReach:
	}
	return ""
}

// judged says how an object is that exists.
func judged(ref object.Ref, live *unstructured.Unstructured) Object {
	j := verify.Object(live, "ready")
	switch j.Health {
	case verify.Ready:
		return objectOf(ref, Ready, "")
	case verify.Failed, verify.Broken:
		return objectOf(ref, Failed, j.Message)
	case verify.Progressing:
	}
	return objectOf(ref, NotReady, j.Message)
}

// finalizers says what an object waits for that is being deleted.
func finalizers(live *unstructured.Unstructured) string {
	if all := live.GetFinalizers(); len(all) > 0 {
		return fmt.Sprintf("waits for its finalizers %v", all)
	}
	return ""
}

// causes explains why an object is not ready, from the objects below it.
func (r Reader) causes(ctx context.Context, live *unstructured.Unstructured) []Object {
	if live.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		return r.missing(ctx, live)
	}
	labels, _, _ := unstructured.NestedStringMap(live.Object, "spec", "selector", "matchLabels")
	if len(labels) == 0 || !hasPods(live.GroupVersionKind().GroupKind()) {
		return nil
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pods, err := r.Cluster.ListLive(ctx, cluster.Selection{Kind: kind, Namespace: live.GetNamespace(), Labels: labels, Limit: verify.PodsOfWorkload})
	if err != nil {
		return []Object{objectOf(object.Ref{GroupVersionKind: kind, Namespace: live.GetNamespace()}, Unreadable, err.Error())}
	}
	pod := verify.NewestNotReadyPod(pods)
	if pod == nil {
		return nil
	}
	out := judged(object.RefOf(pod), pod)
	if why := containerProblem(pod); why != "" {
		out.Message = why
	}
	out.Causes = r.missing(ctx, pod)
	return []Object{out}
}

// hasPods reports whether the objects of a kind select pods that they have made.
func hasPods(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "batch", Kind: "Job"}:
		return true
	}
	return false
}

// missing returns what a pod refers to and does not have: claims without a volume, and Secrets and
// ConfigMaps that do not exist. What may not be read is left out, because it may well be there.
func (r Reader) missing(ctx context.Context, pod *unstructured.Unstructured) []Object {
	var out []Object
	for _, ref := range references(pod) {
		live, err := r.Cluster.GetLive(ctx, ref)
		if err != nil {
			continue
		}
		if live == nil {
			out = append(out, objectOf(ref, Missing, ""))
		} else if o := judged(ref, live); ref.Kind == "PersistentVolumeClaim" && o.Health != Ready {
			out = append(out, o)
		}
	}
	return out
}
