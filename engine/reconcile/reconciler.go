// Package reconcile takes one custom resource one step through its life: it
// fetches the resource, rolls its package out or tears its objects down, and
// stores what came of it. It knows no queue, no watch and no controller-runtime,
// so that the same life can be lived on an API server and in memory.
//
//	             ┌─ deleted ──> Teardown ──────────┐
//	fetch ─> ────┤                                 ├─> status, finalizer, events
//	             └─ there ───> rollout (protect) ──┘
//
// What must survive a crash is stored before it is needed: the finalizer, then the
// inventory, then the objects. Each write is idempotent, and a step that was cut
// off anywhere is completed by the next.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// Package is the version of a package that resources are reconciled with.
type Package interface {
	rollout.Evaluator
	// Name identifies it in status.
	Name() string
	// Digest tells its content from that of others of that name.
	Digest() string
	// Reach is where its objects may be.
	Reach() program.Reach
	// Version identifies what it sees of a session but for the live objects.
	Version(session program.Session) string
	// MayRun reports whether there may be hooks of a phase.
	MayRun(phase program.Phase) bool
}

var _ Package = (*program.Program)(nil)

// defaultParallel is how many components of one resource are applied at once.
const defaultParallel = 4

// A Reconciler steps the resources of one kind. It is safe for concurrent use, for
// one resource at a time.
type Reconciler struct {
	Kind schema.GroupVersionKind
	// Resources has the custom resources, and Cluster their objects and inputs.
	Resources cluster.Cluster
	Cluster   cluster.Cluster
	Recorder  Recorder
	Now       func() time.Time
	// Clock measures how long evaluations take; nil is time.Now.
	Clock func() time.Time
	// Refer says which inputs a resource refers to, as rollout.Engine has it; it may be nil.
	Refer func(owner types.NamespacedName, inputs []program.Input)
	// ConfigMap names the operator's configuration; its zero value is none.
	ConfigMap types.NamespacedName
	// Allow are the administrative annotations that count.
	Allow []string
	// ReachWithoutPackage is where the objects of a resource may be whose package is not here; nil is
	// not known.
	ReachWithoutPackage *program.Reach
	// Parallel is how many components of one resource are applied at once; 0 is a
	// few, and 1 makes the order of writes the same every time.
	Parallel int
	// Subsystem reports whether a kind is that of a package, of this process or of
	// another; nil knows none.
	Subsystem func(context.Context, schema.GroupKind) (bool, error)
	// Ended returns the last state of an object that has ended and is gone, as the engine
	// of package rollout asks for it; nil knows none.
	Ended func(cluster.Ref) *unstructured.Unstructured
	// Patches has the patches, which change the rendering of resources; nil has none. A patch
	// is about one resource, so the reconciler of that resource's kind writes its status.
	Patches cluster.Cluster
	// PackageFault returns what is wrong with the present files of the package, while an
	// earlier version of it serves, or ""; nil is nothing.
	PackageFault func() string

	// NewSalt returns the salt of a Secret that has none; nil is a random one.
	NewSalt func() string

	statusInterval   statusInterval
	salts            salts
	rejections       rejections
	obstacles        obstacles
	writeLimits      writeLimits
	evaluationLimits evaluationLimits
	refusedStatuses  refusedStatuses
}

// state is what one step works on.
type state struct {
	*Reconciler
	log       logr.Logger
	program   Package // nil for a stray
	cr        *unstructured.Unstructured
	before    map[string]any
	owner     ownership.Owner
	inventory ownership.Inventory
	finished  map[string]rollout.HookState
	patches   []foundPatch
	// redactor knows the Secrets that the step has come across.
	redactor *redact.Redactor
}

// Step takes a resource one step further with a package, and returns when to come
// again without an event, 0 for never, which is valid also with an error. It errors when
// something has to be tried again.
func (l *Reconciler) Step(ctx context.Context, key types.NamespacedName, p Package) (time.Duration, error) {
	redactor := redact.New()
	again, err := l.recovered(ctx, key, p, redactor, func() (time.Duration, error) { return l.step(ctx, key, p, redactor) })
	if large, ok := errors.AsType[*statusTooLargeError](err); ok {
		logr.FromContextOrDiscard(ctx).V(1).Info("not tried again for now", "reason", redactor.Error(large))
		return rollout.RejectedRetryAfter, nil
	}
	return again, redactor.Error(err)
}

func (l *Reconciler) step(ctx context.Context, key types.NamespacedName, p Package, redactor *redact.Redactor) (time.Duration, error) {
	s, err := l.fetch(ctx, key, p, redactor)
	wrong, unread := errors.AsType[*corruptStatusError](err)
	often, restless := errors.AsType[*tooOftenError](err)
	switch {
	case restless:
		return often.wait, nil
	case unread && s.paused() && s.cr.GetDeletionTimestamp() == nil:
		return s.pause(ctx)
	case unread:
		return s.reportCorruptStatus(ctx, wrong)
	case err != nil:
		return 0, err
	case s == nil:
		l.statusInterval.forget(key)
		l.rejections.forget(key)
		l.salts.forget(key)
		l.obstacles.settle(key, l.Now())
		l.writeLimits.forget(key)
		l.evaluationLimits.forget(key)
		l.refusedStatuses.forget(key)
		if l.Refer != nil {
			l.Refer(key, nil)
		}
		return 0, l.targetMissing(ctx, key)
	case s.cr.GetDeletionTimestamp() != nil:
		return s.teardown(ctx)
	case s.paused():
		return s.pause(ctx)
	}
	return s.rollOut(ctx)
}

// fetch reads the custom resource; it returns nil when there is none. with a corruptStatusError
// it returns both.
func (l *Reconciler) fetch(ctx context.Context, key types.NamespacedName, p Package, redactor *redact.Redactor) (*state, error) {
	cr, err := l.Resources.GetCached(ctx, l.ref(key))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", l.Kind.Kind, key, err)
	}
	if cr == nil {
		return nil, nil
	}
	s := &state{
		Reconciler: l,
		log:        redactor.Log(leveled(logr.FromContextOrDiscard(ctx), l.allowed(cr, AnnotationLogLevel))),
		redactor:   redactor,
		program:    p,
		cr:         cr,
		owner: ownership.Owner{
			Ref: cluster.Ref{GroupVersionKind: l.Kind, Namespace: cr.GetNamespace(), Name: cr.GetName()}, UID: cr.GetUID(), Reach: l.ReachWithoutPackage,
		},
	}
	if p != nil {
		reach := p.Reach()
		s.owner.Reach = &reach
	}
	s.before = ownStatus(cr)
	if err := s.loadState(); err != nil {
		return s, err
	}
	if err := s.rebuild(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", s.owner, err)
	}
	s.allowNames()
	return s, nil
}

// ref returns the identity of a resource.
func (l *Reconciler) ref(key types.NamespacedName) cluster.Ref {
	return cluster.Ref{GroupVersionKind: l.Kind, Namespace: key.Namespace, Name: key.Name}
}

// rebuild finds the objects of a resource whose inventory was wiped, alone or with the
// status: it was reconciled before, has the finalizer of one with objects, or was
// changed since it was created.
func (s *state) rebuild(ctx context.Context) error {
	had := s.before["observedGeneration"] != nil || slices.Contains(s.cr.GetFinalizers(), Finalizer) || s.cr.GetGeneration() > 1
	if _, known := s.before[fieldInventory]; known || !had {
		return nil
	}
	if err := s.writeLimits.rebuild(s.key(), s.Now()); err != nil {
		return err // somebody wipes it again and again
	}
	objects, err := s.Cluster.Owned(ctx, s.owner.Searched(), ownership.OwnerLabel, s.owner.Label())
	if err != nil {
		return fmt.Errorf("rebuilding the inventory: %w", err)
	}
	inventory, skipped := ownership.Rebuild(s.owner, objects)
	s.inventory = inventory
	var events []rollout.Event
	for _, o := range skipped {
		events = append(events, rollout.Event{Reason: "MarksIgnored", Warning: true, Message: fmt.Sprintf("Ignored the marks of %s: %s", o.Ref, o.Why)})
	}
	s.recordObjectEvents(events)
	return nil
}

// rollOut runs the package once and reports what came of it.
func (s *state) rollOut(ctx context.Context) (time.Duration, error) {
	in, err := s.input(ctx)
	if bad, ok := errors.AsType[*configError](err); ok {
		return s.reportNotStarted(ctx, status.Component{State: status.Failed, Reason: status.ReasonInvalidConfig, Message: bad.Error()}, nil)
	}
	if err != nil {
		return s.reportNotStarted(ctx, rollout.ClusterFault(err), err)
	}
	bounded := s.limitEvaluations(in)
	result, failure := s.engine(bounded).Run(ctx, in)
	result.RequeueAfter = earliest(earliest(result.RequeueAfter, bounded.retryAfter), s.obstacles.settle(s.key(), s.Now()))
	return s.conclude(ctx, result, failure)
}

// reportNotStarted reports a rollout that cannot begin: the running objects stay as they are.
func (s *state) reportNotStarted(ctx context.Context, fault status.Component, failure error) (time.Duration, error) {
	result := rollout.Result{Inventory: s.inventory, HookStates: s.finished}
	result.Completion.Change = status.Unchanged
	result.Completion.Fault = fault
	return s.conclude(ctx, result, failure)
}

func (s *state) limitEvaluations(in rollout.Input) *limitedPackage {
	return &limitedPackage{Package: s.program, s: s, cause: s.cause(in)}
}

func (s *state) engine(p rollout.Evaluator) *rollout.Engine {
	parallel := s.Parallel
	if parallel == 0 {
		parallel = defaultParallel
	}
	return &rollout.Engine{
		Package: p, Cluster: s.Cluster, WatchInputs: s.Refer, Reach: s.program.Reach(), Parallel: parallel, Subsystem: s.Subsystem,
		PodProblem: below{s}.Of, FinishedObject: s.Ended,
	}
}

// input gathers what a rollout starts from.
func (s *state) input(ctx context.Context) (rollout.Input, error) {
	var err error
	if s.patches, err = s.patchesOf(ctx, s.key()); err != nil {
		return rollout.Input{}, err
	}
	config, err := s.config(ctx)
	in := rollout.Input{
		Owner: s.owner, CR: s.cr.Object, Inventory: s.inventory, HookStates: s.finished, Requested: s.asked(),
		Patches: parsed(s.patches), Redactor: s.redactor,
		Config: config.layers, ConfigInputs: config.inputs, StoreWriteAhead: s.protect, Rejections: s.rejected(), Salts: s.saltsOf(),
		CheckTimeout: func(c status.Component) status.Component { late, _ := s.applyTimeout(c); return late },
	}
	s.writeLimits.begin(s.key(), s.cause(in), s.Now())
	in.WriteBackoff = &objectBackoff{&s.writeLimits, s.key(), s.Now, map[string]bool{}}
	return in, err
}

// conclude stores what came of a rollout.
func (s *state) conclude(ctx context.Context, result rollout.Result, failure error) (time.Duration, error) {
	if large, ok := errors.AsType[*statusTooLargeError](failure); ok {
		return 0, large
	}
	s.inventory, s.finished = result.Inventory, result.HookStates
	for _, fault := range result.Panics {
		logPanic(s.log, fault)
	}
	s.salts.retain(s.key(), s.inventory)
	for _, c := range result.Completion.Components {
		s.log.V(1).Info("component", "name", c.Name, "state", c.State, "reason", c.Reason, "message", c.Message)
	}
	if result.NeedsFinalizer {
		if err := s.setFinalizer(ctx, finalizerPresent); err != nil {
			return 0, err
		}
	}
	due := earliest(result.RequeueAfter, s.applyTimeouts(&result.Completion))
	again, err := s.report(ctx, result)
	if err != nil {
		return due, errors.Join(failure, err)
	}
	return earliest(due, again), errors.Join(failure, s.reportPatches(ctx, result))
}

// earliest returns the shorter of two waits, of which 0 is none.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// protect stores an inventory before its objects are written, and before that the
// finalizer, if garbage collection would not do.
func (s *state) protect(ctx context.Context, p rollout.WriteAhead) error {
	if p.NeedsFinalizer {
		if err := s.setFinalizer(ctx, finalizerPresent); err != nil {
			return err
		}
	}
	if err := s.writeLimits.storeInventory(s.key(), s.Now()); err != nil {
		return err
	}
	stored := s.inventory
	s.inventory, s.finished = p.Inventory, p.HookStates
	after := s.build(p.Preview)
	if size := s.sizeWith(after); size > maxResource {
		s.inventory = stored
		return s.writeReducedStatus(ctx, fmt.Errorf("the resource would have %d bytes with it, and %d are the limit", size, maxResource))
	}
	return s.write(ctx, after)
}
