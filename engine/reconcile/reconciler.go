// Package reconcile takes one custom resource one step further: it fetches the resource, rolls out
// its package or tears down its objects, and writes the status. It has no queue, no watches and
// nothing of controller-runtime, so that the same code runs on an API server and in memory.
//
//	        ┌─ deleted ──> teardown ─────────────┐
//	fetch ──┤                                    ├──> status, finalizer, events
//	        └─ otherwise ─> rollout (writeAhead) ┘
//
// Whatever has to survive a crash is stored before it is needed: the finalizer, then the
// inventory, then the objects. Each write is idempotent, and the next reconcile completes one that
// was interrupted anywhere.
//
// Where to look:
//
//	component_timeout.go   timeouts of components
//	evaluation_limit.go    evaluations that take too much or too long
//	write_history.go       what was written lately; the backoff of writes that others provoke
//	status_write.go        the write of the status; status_interval.go how often progress is written
//	stored_state.go        the state that the engine keeps in the status
//	pause.go               pausing; annotations.go the other annotations for people
//	finalizer.go           the write of the finalizer; whether there has to be one is for rollout (needsFinalizer)
//	teardown.go            deletion; package_missing.go deletion without the package
//	unchanged.go           reconciles of resources at rest
//	observe.go             what observers are notified of
//	trace.go               the trace of a rollout
//	memory.go              what the process remembers of a resource
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
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
	rollout.Locator
	// Name identifies it in status.
	Name() string
	// Digest tells its content from that of others of that name.
	Digest() string
	// Reach is where a resource may have objects.
	Reach() program.Reach
	// MayRender reports whether an object may have a kind.
	MayRender(kind schema.GroupKind) bool
	// Version identifies what the package reads of a session, except the live objects.
	Version(session program.Session) string
	// MayRun reports whether there may be hooks of a phase.
	MayRun(phase program.HookPhase) bool
}

var _ Package = (*program.Program)(nil)

// defaultParallel is how many components of one resource are applied at once.
const defaultParallel = 4

// A Reconciler reconciles the resources of one kind. It is safe for concurrent use, with one reconcile of a
// resource at a time.
type Reconciler struct {
	Kind schema.GroupVersionKind
	// Resources has the custom resources, and Cluster their objects and inputs.
	Resources cluster.Cluster
	Cluster   cluster.Cluster
	Recorder  Recorder
	Now       func() time.Time
	// WatchInputs is called with the inputs that a resource refers to, as in rollout.Engine; it may be nil.
	WatchInputs func(owner types.NamespacedName, inputs []program.Input, failed bool)
	// ConfigMap names the operator's configuration; its zero value is none.
	ConfigMap types.NamespacedName
	// Allow are the administrative annotations that count.
	Allow []string
	// ReachWithoutPackage is where a resource may have objects whose package does not run here;
	// nil means unknown.
	ReachWithoutPackage *program.Reach
	// Parallel is how many components of one resource are applied at once; 0 is a default, and
	// 1 makes the order of writes deterministic.
	Parallel int
	// Subsystem reports whether a kind belongs to a package of this or another process; nil
	// means no kind does.
	Subsystem func(context.Context, schema.GroupKind) (bool, error)
	// FinishedObject returns the last state of an object that has finished and is gone, as in
	// rollout.Engine; nil knows none.
	FinishedObject func(cluster.Ref) *unstructured.Unstructured
	// Patches has the patches; nil has none. A patch has one target, so the reconciler of the
	// target's kind writes the status of the patch.
	Patches cluster.Cluster
	// PackageFault returns what is wrong with the present files of the package, while an
	// earlier version of it serves, or ""; nil is nothing.
	PackageFault func() string
	// PatchesUnread returns why the operator may not read the Patches of a namespace, so that Patches has none there, or "";
	// nil means that it may.
	PatchesUnread func(namespace string) string

	// Tracer makes a trace of each rollout; nil makes none.
	Tracer trace.Tracer
	// Observer is notified of the states of resources; it may be nil.
	Observer Observer

	// NewSalt returns the salt of a Secret that has none; nil is a random one.
	NewSalt func() string

	memories memories
}

// A subject is the resource that a reconcile is about, with its status, and its package.
type subject struct {
	program Package // nil if it does not run here
	cr      *unstructured.Unstructured
	before  map[string]any // the status
	owner   ownership.Owner
}

// state is what one reconcile works on.
type state struct {
	*Reconciler
	subject

	log        logr.Logger
	inventory  ownership.Inventory
	hookStates rollout.HookStates
	patches    []foundPatch
	// redactor knows the Secrets that the reconcile has read.
	redactor *redact.Redactor
	memory   *memory
	// inputs are what the rollout has read besides its objects, and statusUnchanged says that the status
	// was as it is to be.
	inputs          []program.Input
	statusUnchanged bool
	// expected is what the reconcile was expected to read, and expectedVersions are the versions of that before it began;
	// "" if they are not known.
	expected         reading
	expectedVersions string
}

// Reconcile takes a resource one step further with a package. It returns when to reconcile again without an
// event, also beside an error; 0 is never. It errors when the reconcile has to be retried.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName, p Package) (time.Duration, error) {
	redactor := redact.New()
	again, err := r.recovered(ctx, key, p, redactor, func() (time.Duration, error) { return r.reconcile(ctx, key, p, redactor) })
	if large, ok := errors.AsType[*statusTooLargeError](err); ok {
		logr.FromContextOrDiscard(ctx).V(1).Info("not tried again for now", "reason", redactor.Error(large))
		return rollout.RejectedRetryAfter, nil
	}
	return again, redactor.Error(err)
}

func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName, p Package, redactor *redact.Redactor) (time.Duration, error) {
	if again, ok := r.unchanged(ctx, key, p); ok {
		return again, nil
	}
	s, err := r.fetch(ctx, key, p, redactor)
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
		if r.WatchInputs != nil {
			r.WatchInputs(key, nil, false)
		}
		return 0, r.targetMissing(ctx, key)
	case s.cr.GetDeletionTimestamp() != nil:
		return s.teardown(ctx)
	case s.paused():
		return s.pause(ctx)
	}
	return s.rollOut(ctx)
}

// fetch reads the custom resource and its state. It returns nil if there is none. It errors with a
// corruptStatusError beside the resource if the status cannot be read.
func (r *Reconciler) fetch(ctx context.Context, key types.NamespacedName, p Package, redactor *redact.Redactor) (*state, error) {
	cr, err := r.get(ctx, key)
	if err != nil || cr == nil {
		return nil, err
	}
	s := r.newState(ctx, cr, p, redactor)
	s.owner.Reach = r.ReachWithoutPackage
	if p != nil {
		reach := p.Reach()
		s.owner.Reach = &reach
	}
	if err := s.loadState(); err != nil {
		return s, err
	}
	if err := s.rebuild(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", s.owner, err)
	}
	allowNames(s.redactor, s.owner, s.inventory)
	return s, nil
}

// get reads a custom resource from the cache. It returns nil for a missing one, and forgets it.
func (r *Reconciler) get(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	cr, err := r.Resources.GetCached(ctx, r.ref(key))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Kind.Kind, key, err)
	}
	if cr == nil {
		r.Forget(key)
	}
	return cr, nil
}

// Forget forgets a resource that another process reconciles, or that is gone.
func (r *Reconciler) Forget(key types.NamespacedName) {
	r.memories.forget(key)
	r.observeGone(key)
}

// newState returns what a reconcile works on, without the state in the status.
func (r *Reconciler) newState(ctx context.Context, cr *unstructured.Unstructured, p Package, redactor *redact.Redactor) *state {
	key := types.NamespacedName{Namespace: cr.GetNamespace(), Name: cr.GetName()}
	return &state{
		Reconciler: r,
		log:        redactor.Log(withLogLevel(logr.FromContextOrDiscard(ctx), r.allowed(cr, AnnotationLogLevel))),
		redactor:   redactor,
		subject:    subject{p, cr, ownStatus(cr), ownership.Owner{Ref: r.ref(key), UID: cr.GetUID()}},
		memory:     r.memories.get(key, cr.GetUID()),
	}
}

// ref returns the identity of a resource.
func (r *Reconciler) ref(key types.NamespacedName) cluster.Ref {
	return cluster.Ref{GroupVersionKind: r.Kind, Namespace: key.Namespace, Name: key.Name}
}

// rebuild finds the objects of a resource whose inventory was removed, alone or with the whole status.
// Such a resource was reconciled before, has the finalizer, or was changed since its creation.
func (s *state) rebuild(ctx context.Context) error {
	had := s.before["observedGeneration"] != nil || slices.Contains(s.cr.GetFinalizers(), Finalizer) || s.cr.GetGeneration() > 1
	if _, known := s.before[fieldInventory]; known || !had {
		return nil
	}
	if err := stateLimit.attempt(&s.memory.writes.rebuilds, s.Now()); err != nil {
		return err // it is removed again and again, and each time every kind is listed
	}
	objects, err := s.Cluster.Owned(ctx, s.owner.SearchNamespace(), ownership.OwnerLabel, s.owner.Label())
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

// rollOut runs the package once and reports the result.
func (s *state) rollOut(ctx context.Context) (time.Duration, error) {
	ctx, span := s.startTrace(ctx)
	defer span.End()
	s.expectReading(ctx) // before anything else is read
	in, err := s.input(ctx)
	if bad, ok := errors.AsType[*ConfigError](err); ok {
		return s.reportNotStarted(ctx, status.Component{State: status.Failed, Reason: status.ReasonInvalidConfig, Message: bad.Error()}, nil)
	}
	if err != nil {
		return s.reportNotStarted(ctx, rollout.ClusterFault(err), err)
	}
	limited := s.limitEvaluations(in)
	result, failure := s.run(ctx, limited, in)
	result.RetryAfter = rollout.ShortestWait(result.RetryAfter, limited.retryAfter, s.memory.podProblems.endReconcile(s.Now()))
	result.RequeueAfter = rollout.ShortestWait(result.RequeueAfter, result.RetryAfter)
	again, err := s.conclude(ctx, result, failure)
	if !s.statusUnchanged || len(result.Events) > 0 {
		s.memory.changed = s.Now()
		if in.LookAgain > 0 && result.RetryAfter == in.LookAgain {
			again = rollout.ShortestWait(again, rollout.FirstLookAgain) // something else is in the way now
		}
	}
	s.noteNoop(result, again, err)
	return again, err
}

// run returns what came of one rollout. If the package predicts that there is nothing to do, and nothing to say in the
// status, it is not evaluated.
func (s *state) run(ctx context.Context, p rollout.Evaluator, in rollout.Input) (rollout.Result, error) {
	engine := s.engine(p)
	if s.mayBeInSync() {
		if result, inSync := engine.CheckInSync(ctx, in); inSync && s.isReported(result) {
			return result, nil
		}
	}
	return engine.Run(ctx, in)
}

// mayBeInSync reports whether the status is about the resource and the package as they are. A user who can write the
// status can forge that; the prediction is then made in vain, and nothing else comes of it.
func (s *state) mayBeInSync() bool {
	observed, _, _ := unstructured.NestedInt64(s.before, "observedGeneration")
	digest, _, _ := unstructured.NestedString(s.before, "package", "digest")
	return observed == s.cr.GetGeneration() && digest == s.program.Digest()
}

// isReported reports whether a result changes nothing of the resource.
func (s *state) isReported(result rollout.Result) bool {
	would := *s
	would.inventory, would.hookStates = result.Inventory, result.HookStates
	return status.Equal(s.before, would.build(result.Completion)) && (!result.NeedsFinalizer || slices.Contains(s.cr.GetFinalizers(), Finalizer))
}

// reportNotStarted reports a rollout that cannot start. The objects stay as they are.
func (s *state) reportNotStarted(ctx context.Context, fault status.Component, failure error) (time.Duration, error) {
	result := rollout.Result{Inventory: s.inventory, HookStates: s.hookStates}
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
		Package: p, Cluster: s.Cluster, WatchInputs: s.watchInputs, Reach: s.program.Reach(), MayRender: s.program.MayRender, Parallel: parallel, Subsystem: s.Subsystem,
		PodProblem: podReader{s.Cluster, s.log, s.redactor, s.Now, &s.memory.podProblems}.podProblem, FinishedObject: s.FinishedObject,
	}
}

// watchInputs notes which inputs the resource refers to, and passes that on.
func (s *state) watchInputs(owner types.NamespacedName, inputs []program.Input, failed bool) {
	if !failed {
		s.inputs = inputs
	}
	if s.WatchInputs != nil {
		s.WatchInputs(owner, inputs, failed)
	}
}

// input returns the input of a rollout. It errors with a ConfigError beside the input if a layer of
// the configuration is not YAML.
func (s *state) input(ctx context.Context) (rollout.Input, error) {
	var err error
	if s.patches, err = s.patchesOf(ctx, s.key()); err != nil {
		return rollout.Input{}, err
	}
	config, err := s.config(ctx)
	in := rollout.Input{
		Owner: s.owner, CR: s.cr.Object, Inventory: s.inventory, HookStates: s.hookStates, Requested: s.asked(),
		Patches: parsed(s.patches), Redactor: s.redactor,
		Config: config.layers, ConfigInputs: config.inputs, StoreWriteAhead: s.writeAhead, Rejections: s.rejected(), Salts: s.saltsOf(),
		LookAgain:    s.memory.lookAgain(s.Now()),
		CheckTimeout: func(c status.Component) status.Component { late, _ := s.applyTimeout(c); return late },
	}
	s.memory.writes.begin(s.cause(in), s.Now())
	in.WriteBackoff = &objectBackoff{&s.memory.writes, s.Now, map[string]bool{}}
	return in, err
}

// conclude writes the result of a rollout into the status, and returns when to reconcile again.
func (s *state) conclude(ctx context.Context, result rollout.Result, failure error) (time.Duration, error) {
	if large, ok := errors.AsType[*statusTooLargeError](failure); ok {
		return 0, large
	}
	s.inventory, s.hookStates = result.Inventory, result.HookStates
	for _, fault := range result.Panics {
		logPanic(s.log, fault)
	}
	s.memory.salts.retain(s.inventory)
	for _, c := range result.Completion.Components {
		s.log.V(1).Info("component", "name", c.Name, "state", c.State, "reason", c.Reason, "message", c.Message)
	}
	due := rollout.ShortestWait(result.RequeueAfter, s.applyTimeouts(&result.Completion))
	if result.NeedsFinalizer {
		err := s.setFinalizers(ctx, Finalizer)
		if often, restless := errors.AsType[*tooOftenError](err); restless {
			due = rollout.ShortestWait(due, often.wait)
		} else if err != nil {
			return 0, err
		}
	}
	again, err := s.report(ctx, result)
	if err != nil {
		return due, errors.Join(failure, err)
	}
	return rollout.ShortestWait(due, again), errors.Join(failure, s.reportPatches(ctx, result))
}

// writeAhead stores an inventory before its objects are written, and before that the finalizer, if
// garbage collection is not enough.
func (s *state) writeAhead(ctx context.Context, p rollout.WriteAhead) error {
	if p.NeedsFinalizer {
		if err := s.setFinalizers(ctx, Finalizer); err != nil {
			return err
		}
	}
	if err := storeLimit.attempt(&s.memory.writes.stored, s.Now()); err != nil {
		return err
	}
	before, stored := s.before, s.inventory
	s.inventory, s.hookStates = p.Inventory, p.HookStates
	after := s.build(p.Preview)
	if size := s.sizeWith(after); size > maxResource && s.inventory.Size() > stored.Size() {
		s.inventory = stored
		return s.writeReducedStatus(ctx, fmt.Errorf("the resource would have %d bytes with it, and %d are the limit", size, maxResource))
	}
	if err := s.write(ctx, after); err != nil {
		return err
	}
	// It may be the first write that says that the resource has failed, if a report was held back.
	s.recordTransition(before, after)
	return nil
}
