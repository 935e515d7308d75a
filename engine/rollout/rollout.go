// Package rollout runs the package of one custom resource once: it observes, evaluates, applies
// what may be applied, judges what is healthy, deletes what is no longer wanted, and returns the
// result. It knows no controller and no queue, and keeps nothing between two rollouts.
//
//	observe -> evaluate -> plan -> stamp -> store inventory -> deploy -> hooks -> prune -> Result
//
//	observe   read the live objects of the inventory
//	evaluate  run the package over the resource and those objects, until it names no others
//	plan      order the components, and find out which are excluded
//	stamp     give the objects digest, marks and owner; find duplicates
//	store     write the inventory to the status before the first write
//	deploy    layer by layer: gate, apply, evaluate again, judge
//	hooks     those after deploy, then those after verify
//	prune     delete what is no longer rendered, dependents first
//
// Each phase has a type that sees only what the phases before have found out:
//
//	observed   what the cluster has: live objects, inputs, inventory
//	evaluated  what the package says of that: rendering, patches, graph, exclusions
//	progress   how far the components are: desired objects, outcomes
//	hooks      which hooks run, and how they ended
//	run        what the rollout has done: events, requeue, result
//
// An applier writes the objects of one component. It sees observed only and changes nothing, so
// several run at the same time. Engine.Preview shares the phases before the first write.
//
// Teardown deletes everything in an inventory and needs no package.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/status"
)

// An Evaluator evaluates a package. A program.Program is one; others bound the work.
type Evaluator interface {
	// Evaluate returns what Program.Evaluate returns.
	Evaluate(program.Session) (program.Rollout, error)
}

// Engine runs rollouts. It is safe for concurrent use.
type Engine struct {
	Package Evaluator
	Cluster cluster.Cluster
	// WatchInputs is called at the end of a rollout with what enqueues the resource when it changes: the inputs of the last
	// evaluation that has succeeded, and those that a failed one has asked for besides. It may be nil.
	WatchInputs func(owner types.NamespacedName, inputs []program.Input, failed bool)
	// Reach is where the objects of a resource may be.
	Reach program.Reach
	// MayRender reports whether the package may render objects of a kind, whatever the resource is. Objects of other kinds may be
	// unreadable. It may be nil; then the package may render every kind.
	MayRender func(schema.GroupKind) bool
	// Parallel is how many components are applied at the same time; 0 is one.
	Parallel int
	// Subsystem reports whether a kind is that of a package, whose resources report Ready: one
	// without a status is not ready yet. It may be nil.
	Subsystem func(context.Context, schema.GroupKind) (bool, error)
	// PodProblem returns what keeps the pods of a workload from being ready, or "". Each
	// rollout calls it, so it must not cost a request each time. It may be nil.
	PodProblem func(ctx context.Context, workload *unstructured.Unstructured) string
	// FinishedObject returns the last state of an object that has finished and is gone, if a watch
	// event has reported it lately, or nil. It may be nil.
	FinishedObject func(cluster.Ref) *unstructured.Unstructured
}

// Input is what one rollout starts from.
type Input struct {
	Owner ownership.Owner
	// CR is the custom resource as the API server returned it.
	CR map[string]any
	// Inventory is what the resource has written so far.
	Inventory ownership.Inventory
	// HookStates are how the hooks have ended.
	HookStates HookStates
	// Requested says that a person has asked for this rollout: failed Jobs that are gone run again.
	Requested bool
	// Patches change what the package renders, in any order.
	Patches []patch.Patch
	// Config are the layers of configuration, the weakest first, and ConfigInputs the objects
	// that they were read from.
	Config       []program.Layer
	ConfigInputs []program.Input
	// StoreWriteAhead stores what must survive a crash after the first write.
	StoreWriteAhead func(context.Context, WriteAhead) error
	// Rejections remembers what the API server has rejected; nil remembers nothing.
	Rejections Rejections
	// Salts has the salts of the resource's Secrets; nil gives all of them a fixed one, as in a dry
	// run.
	Salts Salts
	// Redactor learns the Secrets that the rollout reads or renders; it may be nil.
	Redactor *redact.Redactor
	// WriteBackoff delays objects that are written again and again; nil delays none.
	WriteBackoff WriteBackoff
	// LookAgain is when to look again at an object that is in the way, if that is later than usual: it costs a request each time,
	// and may be there forever.
	LookAgain time.Duration
	// CheckTimeout returns an outcome as TimedOut if the component's timeout has passed; nil
	// never does.
	CheckTimeout func(status.Component) status.Component
}

// A WriteAhead is what is stored before the first write.
type WriteAhead struct {
	Inventory ownership.Inventory
	// NeedsFinalizer says that the resource must exist until its objects are deleted.
	NeedsFinalizer bool
	// Preview is the status before the first write.
	Preview    status.Completion
	HookStates HookStates
}

// A HookState is how a hook ended. A hook before deletion is Waiting until it runs, so that a
// deletion without the package knows of it.
type HookState struct {
	// Digest is that of the content that it ran with.
	Digest string
	State  status.State
}

// Result is the result of a rollout.
type Result struct {
	Completion status.Completion
	Inventory  ownership.Inventory
	// Patches are the results of the patches; without an evaluation there are none.
	Patches []patch.Report
	// RequeueAfter is when to reconcile again without an event; 0 is never.
	RequeueAfter time.Duration
	// RetryAfter is the part of RequeueAfter that the engine asks for, because no watch event reports
	// something that the rollout has read; 0 is nothing.
	RetryAfter time.Duration
	// MoreEntries says that the next reconcile looks for more entries of the inventory. The inventory without those that were looked
	// for has to be stored before, or they would be looked for again.
	MoreEntries bool
	// Events are what happened, in the past tense.
	Events     []Event
	HookStates HookStates
	// NeedsFinalizer says that the resource must exist until its objects are deleted.
	NeedsFinalizer bool
	// Detail is where the evaluator panicked. It is for the log, too long for a status.
	Detail string
	// Panics are the panics of the rollout.
	Panics []*PanicError
}

// An Event is something that happened to an object.
type Event struct {
	Reason  string
	Message string
	// Warning says that a person should look.
	Warning bool
}

// Run rolls a package out once. It errors when the cluster refused something, and should be retried
// then; the result is valid also with an error.
func (e *Engine) Run(ctx context.Context, in Input) (Result, error) {
	r := newRun(ctx, e, in)
	r.runUntilFault(ctx, append(r.readOnlyPhases(), r.storeInventory, r.deploy, r.afterDeploy, r.afterVerify, r.prune)...)
	r.watchInputs()
	return r.finish(), errors.Join(r.failures...)
}

// phase is a part of a rollout. An error ends the rollout.
type phase func(context.Context) error

// readOnlyPhases are the phases before the first write, which Preview shares with Run.
func (r *run) readOnlyPhases() []phase {
	return []phase{r.observe, r.evaluate, r.plan, r.stampAll, r.growInventory}
}

// run is one rollout: what the phases have found out, and what it has done so far.
type run struct {
	hooks
	result Result
	change status.Change
	// requeueAfter is when to look again at what no watch event reports, or 0.
	requeueAfter time.Duration
	// grown is the inventory as it has to be before the first write.
	grown ownership.Inventory
	// roundsWithNewComponents is how often answers of the API server have led to components that were not known before.
	roundsWithNewComponents int
	// notOwned is how many entries of the inventory were looked for that are not the resource's.
	notOwned int
	// deleting says that the resource is being deleted.
	deleting bool
	// stoppedAt is where the package has what has stopped the rollout, as far as that is known.
	stoppedAt fault.Position
}

func newRun(ctx context.Context, e *Engine, in Input) *run {
	in.Owner.Reach = &e.Reach
	inventory, events := withinReach(ctx, e.Cluster, in.Owner, in.Inventory)
	in.Inventory, in.Owner = inventory, in.Owner.WithInventory(inventory)
	obs := &observed{
		Engine: e, in: in, inventory: inventory, live: live{}, unread: map[string]string{}, hidden: map[string]string{},
		stored: map[cluster.Ref]ownership.Entry{}, unreadable: map[cluster.Ref]bool{}, read: map[string]program.FoundInput{}, written: map[cluster.Ref]*unstructured.Unstructured{},
	}
	pr := &progress{
		evaluated: &evaluated{observed: obs},
		desired:   map[string][]ownership.Desired{}, stamped: map[[2]string]stamped{}, awaited: map[string]string{},
		outcomes: map[string]status.Component{}, judged: map[string]bool{}, rejected: map[string]string{},
	}
	states := HookStates{}
	maps.Copy(states, in.HookStates)
	return &run{hooks: hooks{progress: pr, states: states}, result: Result{Events: events}, change: status.Unchanged}
}

// stopError ends a rollout for a fault of the resource or of the package as a whole. A retry
// would not help.
type stopError struct {
	fault status.Component
	// at is where the package has what is wrong, as far as that is known.
	at fault.Position
	// detail is for the log.
	detail string
}

// Error says what is wrong.
func (e *stopError) Error() string { return e.fault.Message }

// stop returns a stopError.
func stop(reason status.Reason, message string) error {
	return &stopError{fault: failed("", reason, joinLines(message))}
}

// stopAt returns a stopError about a place in the package.
func stopAt(at fault.Position, reason status.Reason, message string) error {
	return &stopError{fault: failed("", reason, joinLines(message)), at: at}
}

// runUntilFault runs phases until one of them fails.
func (r *run) runUntilFault(ctx context.Context, phases ...phase) {
	for _, phase := range phases {
		err := guarded(func() error { return phase(ctx) })
		if stopped, ok := errors.AsType[*stopError](err); ok {
			r.result.Completion.Fault, r.result.Detail, r.stoppedAt = stopped.fault, stopped.detail, stopped.at
			return
		}
		if err != nil {
			r.failures = append(r.failures, err)
			r.result.Completion.Fault = ClusterFault(err)
			if crash, ok := r.panicked("", err); ok {
				r.result.Completion.Fault = crash
			}
			return
		}
	}
}

// ClusterFault is the fault of a rollout that an error of the cluster has ended. A kind that
// cannot be read ends it too: everything that is rendered may depend on its objects.
func ClusterFault(err error) status.Component {
	out := retrying("", joinLines(err.Error()))
	if _, ok := errors.AsType[*cluster.KindUnreadableError](err); ok {
		out.Reason = status.ReasonKindUnreadable
	}
	if _, ok := errors.AsType[*program.UnavailableError](err); ok {
		out.Reason = status.ReasonEvaluationFailed
	}
	return out
}

// finish assembles the result.
func (r *run) finish() Result {
	out := r.result
	r.inventory = r.withAppliedEdges()
	out.Inventory = r.withFinished(r.inventory.WithUIDs(r.in.Owner.Namespace, slices.Collect(r.live.all())...))
	out.HookStates = r.hookStates()
	out.NeedsFinalizer = r.needsFinalizer(r.inventory)
	out.Completion.Components = r.components()
	out.Completion.Change = r.change
	out.Completion.Own = r.ownStatus()
	out.Patches = r.patchReports()
	out.Completion.Patches = effective(out.Patches)
	if out.Completion.Fault.IsZero() {
		out.Completion.Fault = r.statusFault()
	}
	out.RetryAfter = r.retryAfter(out.Completion.Components)
	out.RequeueAfter = ShortestWait(out.RetryAfter, r.rollout.RequeueAfter)
	return out
}

// retryAfter returns when to look again at what no watch event reports, or 0.
func (r *run) retryAfter(components []status.Component) time.Duration {
	out := ShortestWait(r.requeueAfter, r.retryPatches)
	if len(r.unread) > 0 {
		out = ShortestWait(out, retryAfter)
	}
	for _, c := range components {
		switch c.Cause() {
		case status.ReasonKindNotServed:
			out = ShortestWait(out, retryAfter)
		case status.ReasonObjectGoing, status.ReasonOwnedByAnother:
			out = ShortestWait(out, max(retryAfter, r.in.LookAgain))
		case status.ReasonObjectRejected:
			out = ShortestWait(out, RejectedRetryAfter)
		default:
		}
	}
	return out
}

// retryAfter is when to look again at what no watch event reports: a kind that is not
// served yet, an object in the way that belongs to another owner.
const retryAfter = 5 * time.Second

// FirstLookAgain is when to look again at an object that is in the way, as long as it has not been there for long.
const FirstLookAgain = retryAfter

// RejectedRetryAfter is when to write an object again that the API server rejected: the
// webhook that rejected it may have changed since.
const RejectedRetryAfter = 5 * time.Minute

// moreEntriesAgain is when more entries of the inventory are looked for that may not be the resource's.
const moreEntriesAgain = 2 * time.Second

// ShortestWait returns the shortest of some waits, of which 0 is none.
func ShortestWait(waits ...time.Duration) time.Duration {
	waits = slices.DeleteFunc(waits, func(d time.Duration) bool { return d == 0 })
	if len(waits) == 0 {
		return 0
	}
	return slices.Min(waits)
}

// eventf records what happened to an object.
func (r *run) eventf(reason, format string, args ...any) {
	r.result.Events = append(r.result.Events, Event{Reason: reason, Message: fmt.Sprintf(format, args...)})
}
