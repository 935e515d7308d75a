// Package dryrun plays a cluster: operators of packages roll custom resources out
// in memory, and what Kubernetes' own controllers would do follows by convention. It
// shows what a package does, step by step, before it does it to anybody.
//
//	w := dryrun.New(programs...)
//	w.Put(resource)            as a person does
//	w.Run(ctx, show)           until nothing changes any more
//	w.Delete(ref); w.Run(...)
//
// Operators reconcile what their watches wake, as they do on a cluster, and the
// controllers act after each reconcile.
//
// Objects are validated as an API server does, and content needs its namespace: those of
// the objects that are put are there, and so are the ones that every cluster has. It is
// no proof that a cluster would accept the objects: there is no admission, no quota and no
// scheduler. Served are Kubernetes' own kinds, those of the packages, and those whose
// definition is there.
package dryrun

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A Step is one reconcile that did something, and what followed from it.
type Step struct {
	// Number counts from 1.
	Number int
	// Resource is the custom resource that was reconciled.
	Resource cluster.Ref
	// Changes are the objects that were created, updated and deleted, in order.
	Changes []cluster.Event
	// Status is that of the resource afterwards; it is nil once that is gone.
	Status map[string]any
	// Err is what the reconcile failed with, to be tried again.
	Err error
	// Played are the objects that controllers changed or deleted afterwards.
	Played []cluster.Ref

	// reported says that the resource itself was written.
	reported bool
}

// World is a cluster in memory with operators. It is for one goroutine.
type World struct {
	// Cluster holds the objects.
	Cluster *memory.Cluster
	// Events are what the operators recorded, in order.
	Events []rollout.Event

	operators   []operator
	definitions *definitions
	watch       *memory.Watch
	due         due
	steps       int
	now         time.Time
}

// operator runs one package.
type operator struct {
	kind      schema.GroupVersionKind
	program   *program.Program
	lifecycle *reconcile.Reconciler
	// reads are the inputs that resources refer to, as the watches of an operator know them.
	reads map[types.NamespacedName][]program.Input
}

// New returns a world with an operator for each package, where objects are validated and
// need their namespaces. The operators are configured by a ConfigMap, if it names one that
// is put there.
func New(config types.NamespacedName, programs ...*program.Program) *World {
	w := &World{Cluster: memory.New(), now: time.Unix(0, 0).UTC(), due: due{}}
	w.definitions = &definitions{servers: map[schema.GroupVersionKind]*conform.Server{}}
	w.Cluster.Refuse(w.definitions.refuse)
	w.Cluster.Validate()
	w.Cluster.Namespaces(always...)
	w.watch = w.Cluster.Watch()
	kinds := map[schema.GroupKind]bool{}
	for _, p := range programs {
		kind := p.GroupVersionKind()
		kinds[kind.GroupKind()] = true
		scope := cluster.Namespaced
		if p.Meta().ClusterScoped {
			scope = cluster.ClusterScoped
		}
		w.Cluster.Serve(kind.GroupKind(), scope)
	}
	w.Cluster.Serve(patch.Kind.GroupKind(), cluster.Namespaced)
	for _, p := range programs {
		kind := p.GroupVersionKind()
		reads := map[types.NamespacedName][]program.Input{}
		w.operators = append(w.operators, operator{kind, p, &reconcile.Reconciler{
			Kind:        kind,
			Resources:   w.Cluster,
			Cluster:     knownKinds{w.Cluster},
			WatchInputs: func(owner types.NamespacedName, inputs []program.Input) { reads[owner] = inputs },
			Recorder:    recorder{w},
			Now:         func() time.Time { return w.now },
			ConfigMap:   config,
			Patches:     w.Cluster,
			Parallel:    1,
			NewSalt:     func() string { return program.FixedSalt },
			Subsystem:   func(_ context.Context, k schema.GroupKind) (bool, error) { return kinds[k], nil },
		}, reads})
	}
	return w
}

// recorder keeps the events in the world.
type recorder struct{ world *World }

// Record implements reconcile.Recorder.
func (r recorder) Record(_ *unstructured.Unstructured, e rollout.Event) {
	r.world.Events = append(r.world.Events, e)
}

// always are the namespaces that every cluster has.
var always = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// Put writes an object as a person does, into a namespace that is there. One that was read
// from a cluster, and so has a resource version, is taken as it was there; it also says
// where objects of its kind live. It errors with a KindNotServedError when nobody says that.
func (w *World) Put(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := w.learnScope(object); err != nil {
		return nil, err
	}
	object, err := withManagedFields(object)
	if err != nil {
		return nil, err
	}
	w.Cluster.Namespaces(object.GetNamespace())
	out, err := w.Cluster.Restore("person", object)
	if err == nil {
		w.Define(out) // what is put next may be of its kind
	}
	return out, err
}

// learnScope serves the kind of an object that says where it lives.
func (w *World) learnScope(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	_, err := w.Scope(kind)
	switch {
	case !cluster.IsKindNotServed(err) || kind.Kind == "":
		return err
	case object.GetNamespace() != "":
		w.Cluster.Serve(kind.GroupKind(), cluster.Namespaced)
	case object.GetResourceVersion() != "":
		w.Cluster.Serve(kind.GroupKind(), cluster.ClusterScoped)
	default:
		return err
	}
	return nil
}

// withManagedFields returns an object that an operator has applied with the fields that it
// owns then: kubectl leaves them out of what it prints, and nothing says that anybody has
// changed them since.
func withManagedFields(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if object.GetAnnotations()[ownership.AppliedMark] == "" || len(object.GetManagedFields()) > 0 {
		return object, nil
	}
	fields, err := memory.AppliedFields(object)
	if err != nil {
		return nil, err
	}
	out := object.DeepCopy()
	out.SetManagedFields(fields)
	return out, nil
}

// Define serves the kind that an object defines, if it is a CustomResourceDefinition.
func (w *World) Define(object *unstructured.Unstructured) {
	if object.GroupVersionKind().GroupKind() == definitionKind {
		w.define(object)
	}
}

// Decide returns what an operator would do about a resource now, and does nothing.
func (w *World) Decide(ctx context.Context, ref cluster.Ref) (reconcile.Decision, error) {
	for _, o := range w.operators {
		if o.kind.GroupKind() == ref.GroupKind() {
			return o.lifecycle.Decide(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, o.program)
		}
	}
	return reconcile.Decision{}, fmt.Errorf("%s: no package is for its kind", ref)
}

// Get returns an object, or nil.
func (w *World) Get(ref cluster.Ref) *unstructured.Unstructured {
	u, err := w.Cluster.GetLive(context.Background(), ref)
	if err != nil {
		return nil
	}
	return u
}

// Delete deletes an object as a person does.
func (w *World) Delete(ref cluster.Ref) error {
	u := w.Get(ref)
	if u == nil {
		return fmt.Errorf("there is no %s", ref)
	}
	return w.Cluster.Remove(ref, u.GetUID())
}

// Ready reports whether a resource is ready, and says why when it is not.
func (w *World) Ready(ref cluster.Ref) (bool, string) {
	u := w.Get(ref)
	if u == nil {
		return false, "it does not exist"
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] == status.ConditionReady {
			return m["status"] == "True", fmt.Sprintf("%v: %v", m["reason"], m["message"])
		}
	}
	return false, "nothing is known of it"
}

// Limits of a run: a package whose objects change with every reconcile never comes
// to rest, and one that waits for a time is given a day of it.
const (
	maxRounds = 500
	// maxIdle is how long a run in memory lets time pass, all in all, while nothing happens.
	maxIdle = 24 * time.Hour
)

// Run lets the operators and the controllers act in turn until nothing changes any
// more, and shows each step in which something did. It errors when it does not come
// to rest.
//
// An operator reconciles a resource when something happens that it watches, or at the
// time that it has asked for. What does not come to rest here because nothing wakes it
// would not on a cluster either.
func (w *World) Run(ctx context.Context, show func(Step)) error {
	idle := time.Duration(0)
	for range maxRounds {
		w.wake(w.watch.Next())
		moved := w.round(ctx, show)
		if err := ctx.Err(); err != nil {
			return err
		}
		if moved {
			idle = 0
			continue
		}
		next, waits := w.due.next()
		switch {
		case waits && !next.After(w.now):
			continue // woken by what somebody else did in this round
		case !waits || w.allReady() || idle > maxIdle:
			return nil
		}
		// Nothing happens by itself: the time until the next look at it passes.
		idle = max(2*idle, next.Sub(w.now))
		w.now = w.now.Add(idle)
	}
	return fmt.Errorf("it does not come to rest: after %d rounds objects still change", maxRounds)
}

// round reconciles every resource that is due once, and reports whether anything
// changed. One that is gone is reconciled as well: its patches have to be told.
func (w *World) round(ctx context.Context, show func(Step)) bool {
	moved := false
	for _, o := range w.operators {
		for _, r := range w.due.now(o.kind.GroupKind(), w.now) {
			step := w.step(ctx, o, r)
			changed := len(step.Changes)+len(step.Played) > 0 || step.reported
			moved = moved || changed
			if changed || step.Err != nil {
				w.steps++
				step.Number = w.steps
				show(step)
			}
		}
	}
	return moved
}

// step reconciles one resource, and lets the controllers act on what came of it.
func (w *World) step(ctx context.Context, o operator, r resource) Step {
	ref := cluster.Ref{GroupVersionKind: o.kind, Namespace: r.key.Namespace, Name: r.key.Name}
	w.now = w.now.Add(time.Second)
	delete(w.due, r)
	wait, err := o.lifecycle.StepUnpaced(ctx, r.key, o.program, func(held time.Duration) { w.now = w.now.Add(held) })
	if err != nil && wait == 0 {
		wait = time.Second
	}
	if wait > 0 {
		w.due[r] = w.now.Add(wait)
	}
	step := Step{Resource: ref, Err: err}
	written := w.watch.Next()
	for _, e := range written {
		if e.Ref.Identity() == ref.Identity() && e.Verb != cluster.Deleted {
			step.reported = true
			continue
		}
		step.Changes = append(step.Changes, e)
	}
	w.play()
	played := w.watch.Next()
	for _, e := range played {
		step.Played = append(step.Played, e.Ref)
	}
	w.wake(append(written, played...))
	if u := w.Get(ref); u != nil {
		step.Status, _, _ = unstructured.NestedMap(u.Object, "status")
	}
	return step
}

// resources are the custom resources of an operator.
func (w *World) resources(o operator) []cluster.Ref {
	var out []cluster.Ref
	for _, ref := range w.Cluster.Refs() {
		if ref.GroupKind() == o.kind.GroupKind() {
			ref.Version = o.kind.Version
			out = append(out, ref)
		}
	}
	return out
}

// allReady reports whether every resource is ready.
func (w *World) allReady() bool {
	for _, o := range w.operators {
		for _, ref := range w.resources(o) {
			if ready, _ := w.Ready(ref); !ready {
				return false
			}
		}
	}
	return true
}

// A Part is one component of a resource and what is there of it.
type Part struct {
	Name    string
	Objects []cluster.Ref
}

// Owned returns what a resource has in its inventory.
func (w *World) Owned(ref cluster.Ref) []Part {
	u := w.Get(ref)
	if u == nil {
		return nil
	}
	groups, _, _ := unstructured.NestedSlice(u.Object, "status", "inventory")
	inventory, err := ownership.Decode(groups)
	if err != nil {
		return nil
	}
	var out []Part
	for _, g := range inventory {
		p := Part{Name: g.Component}
		for _, e := range g.Objects {
			if r := e.Ref(ref.Namespace); w.Get(r) != nil {
				p.Objects = append(p.Objects, r)
			}
		}
		if len(p.Objects) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// Serves reports whether a kind is that of one of the packages.
func (w *World) Serves(kind schema.GroupKind) bool {
	return slices.ContainsFunc(w.operators, func(o operator) bool { return o.kind.GroupKind() == kind })
}

// Scope returns where the objects of a kind live.
func (w *World) Scope(kind schema.GroupVersionKind) (cluster.Scope, error) {
	return knownKinds{w.Cluster}.Scope(context.Background(), kind)
}
