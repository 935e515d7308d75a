// Package dryrun shows what reconciles would write, step by step, without writing it. Both dry
// runs call the reconcile of the operator, and differ in the cluster that they give it: a World
// in memory, or a Server that carries out every write as a dry run of the API server.
//
//	w := dryrun.New(config, programs...)
//	w.Put(resource)            as a person does
//	w.Run(ctx, show)           until nothing changes any more
//	w.Delete(ref); w.Run(...)
//
//	s := dryrun.NewServer(options, programs...)
//	s.Run(ctx, resources, show)   once for each resource
//
// In a World, the controllers of Kubernetes are simulated after each reconcile: they make
// objects healthy. Objects are validated as an API server does, and need their namespaces:
// those of the objects that are put exist, and so do the ones that every cluster has. It is
// no proof that a cluster would accept the objects: there is no admission, no quota and no
// scheduler. The kinds that are served are the built-in ones, those of the packages, and those
// whose definition exists.
package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/faulty"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
)

// World is a cluster in memory with operators. It is for one goroutine.
type World struct {
	// Cluster holds the objects.
	Cluster *memory.Cluster

	operators   []operator
	definitions *definitions
	// operators read and write through seen, where their writes can fail.
	seen *faulty.Cluster
	// controllers says when the simulated controllers act.
	controllers Controllers
	afterWrite  func()
	restarts    int
	watch       *memory.Watch
	// known are the custom resources that were reconciled before, by their kind.
	known map[schema.GroupKind]sets.Set[types.NamespacedName]
	// settled says that the simulated controllers have nothing to do until something is written.
	settled bool
	steps   int
	clock   clock
	// excluded are the objects that the simulated controllers leave as they are.
	excluded sets.Set[cluster.Ref]
	// mirror copies what is read from a cluster; nil means that there is none.
	mirror *mirror
}

// New returns a world with an operator for each package, where objects are validated and
// need their namespaces. The operators are configured by a ConfigMap, if it names one that
// is put there.
func New(config types.NamespacedName, programs ...*program.Program) *World {
	w := &World{Cluster: memory.New(), clock: clock{time.Unix(0, 0).UTC()}, known: map[schema.GroupKind]sets.Set[types.NamespacedName]{}}
	w.excluded = sets.New[cluster.Ref]()
	w.definitions = &definitions{servers: map[schema.GroupVersionKind]*conform.Server{}}
	w.Cluster.SetAdmission(w.definitions.refuse)
	w.Cluster.EnableValidation()
	w.Cluster.RequireNamespaces(always...)
	w.watch = w.Cluster.Watch()
	w.seen = faulty.New(knownKinds{w.Cluster}, w.Cluster)
	w.seen.AfterWrite(w.wrote)
	w.Cluster.Serve(patch.Kind.GroupKind(), cluster.Namespaced)
	for _, p := range programs {
		kind := p.GroupVersionKind().GroupKind()
		scope := cluster.Namespaced
		if p.Meta().ClusterScoped {
			scope = cluster.ClusterScoped
		}
		w.Cluster.Serve(kind, scope)
		w.known[kind] = sets.New[types.NamespacedName]()
		w.operators = append(w.operators, newOperator(p, &w.clock, w.reconciler(config)))
	}
	return w
}

// reconciler returns the reconciler of a new process.
func (w *World) reconciler(config types.NamespacedName) *reconcile.Reconciler {
	r := &reconcile.Reconciler{
		Resources: w.seen, Cluster: w.seen, Patches: w.seen, ConfigMap: config,
		Subsystem: func(_ context.Context, k schema.GroupKind) (bool, error) { return w.Serves(k), nil },
	}
	if w.mirror != nil {
		w.mirror.connect(r)
	}
	return r
}

// EvaluateWith lets another evaluator of the same package evaluate its resources, such as one that remembers.
func (w *World) EvaluateWith(kind schema.GroupKind, p reconcile.Package) {
	if o := w.operatorOf(kind); o != nil {
		o.evaluates = p
	}
}

// always are the namespaces that exist in every cluster.
var always = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// Put writes an object as a person does, and creates its namespace. An object that was read from a
// cluster, and so has a resource version, keeps its state, and also shows where objects of its
// kind live. Put errors with a KindNotServedError if nothing shows that.
func (w *World) Put(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := w.learnScope(object); err != nil {
		return nil, err
	}
	object, err := withManagedFields(object)
	if err != nil {
		return nil, err
	}
	if _, _, defines := cluster.DefinedBy(object.Object); defines && object.Object["status"] == nil {
		object = object.DeepCopy()
		object.Object["status"] = established() // it is served from the start, and no controller has to be waited for
	}
	w.Cluster.RequireNamespaces(object.GetNamespace())
	out, err := w.Cluster.Restore("person", object)
	if err == nil {
		w.define(out) // the next object may be of its kind
	}
	return out, err
}

// ExcludeFromControllers keeps the simulated controllers away from an object.
func (w *World) ExcludeFromControllers(ref cluster.Ref) { w.excluded.Insert(ref.Identity()) }

// SetNamespace gives an object the namespace that it would be created in: none if its kind is
// cluster-scoped, and a default one if it names none. It errors with a KindNotServedError if
// nobody knows where objects of its kind live, unless the object shows it.
func (w *World) SetNamespace(object *unstructured.Unstructured, namespace string) error {
	scope, err := w.Scope(object.GroupVersionKind())
	switch {
	case cluster.IsKindNotServed(err) && showsScope(object) != "":
		return nil
	case err != nil:
		return err
	case scope == cluster.ClusterScoped:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(namespace)
	}
	return nil
}

// showsScope returns where an object lives by what it has, or "": a namespace, or none although it
// was read from a cluster, and so has a resource version.
func showsScope(object *unstructured.Unstructured) cluster.Scope {
	switch {
	case object.GroupVersionKind().Kind == "": // its apiVersion is malformed
		return ""
	case object.GetNamespace() != "":
		return cluster.Namespaced
	case object.GetResourceVersion() != "":
		return cluster.ClusterScoped
	}
	return ""
}

// learnScope serves the kind of an object that shows where it lives.
func (w *World) learnScope(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	_, err := w.Scope(kind)
	if scope := showsScope(object); cluster.IsKindNotServed(err) && scope != "" {
		w.Cluster.Serve(kind.GroupKind(), scope)
		return nil
	}
	return err
}

// withManagedFields returns an object that an operator has applied with the managed fields of that
// apply, if it has none: kubectl leaves them out of what it prints, and nothing shows that anybody
// has changed the object since.
func withManagedFields(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if object.GetAnnotations()[ownership.AppliedAnnotation] == "" || len(object.GetManagedFields()) > 0 {
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

// Preview returns what the operator would do about a resource, and writes nothing. It errors if
// none of the packages is for the kind.
func (w *World) Preview(ctx context.Context, ref cluster.Ref) (reconcile.Preview, error) {
	o := w.operatorOf(ref.GroupKind())
	if o == nil {
		return reconcile.Preview{}, fmt.Errorf("%s: no package is for its kind", ref)
	}
	return o.Preview(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, o.evaluates)
}

// Get returns an object, or nil.
func (w *World) Get(ref cluster.Ref) *unstructured.Unstructured {
	u, err := w.Cluster.GetLive(context.Background(), ref)
	if err != nil {
		return nil
	}
	return u
}

// Delete deletes an object as a person does. It errors if the object does not exist, or if its
// deletion is rejected.
func (w *World) Delete(ref cluster.Ref) error {
	u := w.Get(ref)
	if u == nil {
		return fmt.Errorf("there is no %s", ref)
	}
	return w.Cluster.DeleteInBackground(ref, u.GetUID())
}

const (
	// maxRounds ends the run of a package whose objects change with every reconcile.
	maxRounds = 500
	// maxIdle is how long a run in memory lets time pass, all in all, while nothing happens.
	maxIdle = 24 * time.Hour
)

// Run lets the operators and the simulated controllers act in turn until nothing changes any
// more, and shows each step in which something did. It errors if the context ends, or if
// something still changes after maxRounds.
//
// A round reconciles every resource, because a reconcile that has nothing to do changes
// nothing: which event would have caused it on a cluster makes no difference to the result.
func (w *World) Run(ctx context.Context, show func(Step)) error {
	idle := time.Duration(0)
	for range maxRounds {
		moved, next := w.round(ctx, show)
		if err := ctx.Err(); err != nil {
			return err
		}
		if !moved && w.controllers == ActAtRest {
			moved = len(w.simulateControllers()) > 0
		}
		switch {
		case moved:
			idle = 0
			continue
		case next.IsZero() || w.allReady() || idle > maxIdle:
			return nil
		}
		// Only time can change something: it passes until the next reconcile that was asked for.
		idle = max(2*idle, next.Sub(w.clock.now), time.Second)
		w.clock.pass(idle)
	}
	return fmt.Errorf("it does not come to rest: after %d rounds objects still change", maxRounds)
}

// round reconciles every resource once, all in the same second: an operator has many workers, and
// what is to be waited for is waited for by one resource alone. It reports whether anything changed,
// and returns the first time at which a resource is to be reconciled again without a change, or the
// zero time.
func (w *World) round(ctx context.Context, show func(Step)) (moved bool, next time.Time) {
	w.clock.pass(time.Second)
	begin := w.clock.now
	end := begin
	defer func() { w.clock.now = end }()
	for _, o := range w.operators {
		for _, key := range w.keys(o) {
			w.clock.now = begin
			step, changed, wait := w.step(ctx, o, key)
			if at := w.clock.now.Add(wait); wait > 0 && (next.IsZero() || at.Before(next)) {
				next = at
			}
			if w.clock.now.After(end) {
				end = w.clock.now
			}
			moved = moved || changed
			if changed || step.Err != nil {
				w.steps++
				step.Number = w.steps
				show(step)
			}
		}
	}
	return moved, next
}

// keys returns which resources an operator reconciles, sorted: those that exist, and also those
// that are gone or that only a patch names, because their reconcile tells the patches.
func (w *World) keys(o operator) []types.NamespacedName {
	kind := o.Kind.GroupKind()
	known := w.known[kind]
	for _, ref := range w.Cluster.Refs() {
		if ref.GroupKind() == kind {
			known.Insert(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		}
	}
	patches, _ := w.Cluster.ListLive(context.Background(), cluster.Selection{Kind: patch.Kind}) // it never errors
	for _, u := range patches {
		if p := patch.Parse(u); p.Target.GroupKind == kind {
			known.Insert(types.NamespacedName{Namespace: p.Namespace, Name: p.Target.Name})
		}
	}
	return slices.SortedFunc(maps.Keys(known), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// step reconciles one resource, and lets the simulated controllers act on what was written. It
// reports whether anything changed, and returns when to reconcile again without a change, or 0.
func (w *World) step(ctx context.Context, o operator, key types.NamespacedName) (step Step, changed bool, wait time.Duration) {
	step.Resource = cluster.Ref{GroupVersionKind: o.Kind, Namespace: key.Namespace, Name: key.Name}
	changes := w.next() // by a person
	wait, step.Err = o.reconcile(ctx, key)
	if step.Err != nil {
		wait = max(wait, time.Second)
	}
	written := w.next()
	for _, e := range written {
		if e.Ref.Identity() != step.Resource.Identity() || e.Operation == cluster.Deleted {
			step.Changes = append(step.Changes, e)
		}
	}
	w.settled = w.settled && len(changes)+len(written) == 0
	if !w.settled && w.controllers != ActAtRest && w.controllers != ActNever {
		step.Simulated = w.simulateControllers()
		w.settled = len(step.Simulated) == 0
	}
	if w.seen.Dead() {
		w.restart()
	}
	if u := w.Get(step.Resource); u != nil {
		step.Status, _, _ = unstructured.NestedMap(u.Object, "status")
	}
	return step, len(written)+len(step.Simulated) > 0, wait
}

// Serves reports whether a kind is that of one of the packages.
func (w *World) Serves(kind schema.GroupKind) bool {
	return w.operatorOf(kind) != nil
}

// operatorOf returns the operator of a kind, or nil.
func (w *World) operatorOf(kind schema.GroupKind) *operator {
	for i := range w.operators {
		if w.operators[i].Kind.GroupKind() == kind {
			return &w.operators[i]
		}
	}
	return nil
}

// Scope returns where the objects of a kind live.
func (w *World) Scope(kind schema.GroupVersionKind) (cluster.Scope, error) {
	return knownKinds{w.Cluster}.Scope(context.Background(), kind)
}
