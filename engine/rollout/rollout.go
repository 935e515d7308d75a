// Package rollout runs one custom resource's package once: it observes, evaluates,
// applies what may be applied, judges what is healthy, deletes what is no longer
// wanted, and returns what came of it. It knows no controller and no queue, and
// keeps nothing between runs.
//
//	observe -> evaluate -> decide -> protect -> deploy -> afterDeploy -> afterVerify -> prune -> Result
//
//	observe   the live objects that the inventory names
//	evaluate  the package over the resource and those, until no more are found
//	decide    the order, and which components are excluded
//	protect   the inventory is stored, before the first write
//	deploy    layer by layer: gate, apply, evaluate again, verify
//	after...  the hooks of that phase
//	prune     what left the rendering, dependents first
//
// Teardown deletes everything in an inventory; it needs no package.
//
// Each phase is a short method on run, which is the state of one rollout.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/graph"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/status"
)

// An Evaluator evaluates a package. A program.Program is one; others may bound
// or move the work.
type Evaluator interface {
	// Evaluate returns what Program.Evaluate returns.
	Evaluate(program.Session) (program.Rollout, error)
}

// Engine runs rollouts. It is safe for concurrent use.
type Engine struct {
	Package Evaluator
	Cluster cluster.Cluster
	// WatchInputs says which inputs a resource refers to now, so that a change of one leads to
	// another rollout of the resource. What it has read it refers to until then; nil wakes
	// nobody.
	WatchInputs func(owner types.NamespacedName, inputs []program.Input)
	// Reach is where the objects of a resource may be.
	Reach program.Reach
	// Parallel is how many components are applied at once; at least one is.
	Parallel int
	// Subsystem reports whether a kind is a custom resource that reports Ready: one
	// without a status is then not taken for ready. It may be nil.
	Subsystem func(context.Context, schema.GroupKind) (bool, error)
	// PodProblem returns what keeps the pods of a workload from being ready, or "". Each
	// rollout calls it, so it must not cost a request each time. It may be nil.
	PodProblem func(ctx context.Context, workload *unstructured.Unstructured) string
	// FinishedObject returns the last state of an object that has ended and is gone, if the watch
	// has told of it lately; nil, also as a function, is none.
	FinishedObject func(cluster.Ref) *unstructured.Unstructured
}

// Input is what one rollout starts from.
type Input struct {
	Owner ownership.Owner
	// CR is the custom resource as the API server returned it.
	CR map[string]any
	// Inventory is what the resource has written so far.
	Inventory ownership.Inventory
	// HookStates are the hooks that have run, by name.
	HookStates map[string]HookState
	// Requested says that a person has asked for this rollout.
	Requested bool
	// Patches change what the package renders, in any order.
	Patches []patch.Patch
	// Config are the layers of configuration, the weakest first, and ConfigInputs
	// what they were read from.
	Config       []program.Layer
	ConfigInputs []program.Input
	// StoreWriteAhead stores what has to be known before the first write.
	StoreWriteAhead func(context.Context, WriteAhead) error
	// Rejections remembers what the API server has rejected; nil remembers nothing.
	Rejections Rejections
	// Salts knows the salts of the resource's Secrets; nil gives all of them a fixed one, as
	// in a dry run.
	Salts Salts
	// Redactor is made to know the Secrets that the rollout comes across; it may be nil.
	Redactor *redact.Redactor
	// WriteBackoff keeps objects from being written for ever; nil lets them.
	WriteBackoff WriteBackoff
	// CheckTimeout returns an outcome as one that is TimedOut when the component has had
	// its time; nil never does.
	CheckTimeout func(status.Component) status.Component
}

// A WriteAhead is what is stored before something is written.
type WriteAhead struct {
	Inventory ownership.Inventory
	// NeedsFinalizer says that the resource must not go before its objects were deleted.
	NeedsFinalizer bool
	// Preview is what is about to happen.
	Preview status.Completion
	// HookStates are the hooks as Result has them.
	HookStates map[string]HookState
}

// A HookState is how a hook ended. One that is Waiting has not run and comes before the
// deletion of its resource: whoever deletes the objects without the package has to know.
type HookState struct {
	// Digest is the content that it ran with.
	Digest string
	State  status.State
}

// Result is what came of a rollout.
type Result struct {
	Completion status.Completion
	Inventory  ownership.Inventory
	// Patches are what came of the patches; without an evaluation there are none.
	Patches []patch.Report
	// RequeueAfter is when to come again without an event; 0 is never.
	RequeueAfter time.Duration
	// Events are what happened, in the past tense.
	Events []Event
	// HookStates are the hooks that have run, and those before deletion, by name.
	HookStates map[string]HookState
	// NeedsFinalizer says that the resource must not go before its objects were deleted.
	NeedsFinalizer bool
	// Detail is for the log, and too long for a status: where the evaluator failed.
	Detail string
	// Panics are the faults of the operator that the rollout has met.
	Panics []*PanicError
}

// An Event is something that happened to an object.
type Event struct {
	Reason  string
	Message string
	// Warning says that a person should look.
	Warning bool
}

// run is the state of one rollout.
type run struct {
	*Engine
	in Input

	live live
	// gone are the objects that have ended and are not there any more.
	gone  map[cluster.Ref]gone
	found map[string]program.Found
	// unread are the inputs of kinds that are not served, with why.
	unread   map[string]string
	rollout  program.Rollout
	graph    *graph.Graph[string, program.Edge]
	excluded map[string]string
	// awaited are the components whose own definitions of kinds are not served yet, and
	// what they wait for.
	awaited map[string]string
	// hidden are the excluded components whose live objects the package does not see.
	hidden   map[string]string
	desired  map[string][]ownership.Desired
	outcomes map[string]status.Component
	// judged are the components whose outcome is about what was applied.
	judged    map[string]bool
	inventory ownership.Inventory
	finished  map[string]HookState
	change    status.Change
	result    Result
	// deleting says that the resource is on its way out.
	deleting bool
	// resume is when to look again at objects that were written too often; 0 is never.
	resume time.Duration
	// failures are errors of the cluster, to be retried with backoff.
	failures []error
	// patched are what the last evaluation has made of the patches, and rejected what
	// the API server said of objects that it refused, by address.
	patched  []patch.Report
	rejected map[string]string
}

// live holds observed objects by component and object name.
type live map[string]map[string]*unstructured.Unstructured

// all returns the objects, in no order.
func (l live) all() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, objects := range l {
		for _, u := range objects {
			if u != nil {
				out = append(out, u)
			}
		}
	}
	return out
}

// errStop ends a rollout whose result is complete.
var errStop = errors.New("the rollout is complete")

// Run rolls a package out once. The result is valid also with an error, which
// says that the cluster refused something and that it should be tried again.
func (e *Engine) Run(ctx context.Context, in Input) (Result, error) {
	r := newRun(e, in)
	r.through(ctx, r.observe, r.evaluate, r.decide, r.desireObjects, r.deploy, r.afterDeploy, r.afterVerify, r.prune)
	return r.finish(), errors.Join(r.failures...)
}

func newRun(e *Engine, in Input) *run {
	in.Owner.Reach = &e.Reach
	inventory, left := withinReach(in.Owner, in.Inventory)
	in.Inventory, in.Owner = inventory, in.Owner.WithInventory(inventory)
	return &run{
		result: Result{Events: left},
		Engine: e, in: in, inventory: in.Inventory, live: live{}, change: status.Unchanged,
		outcomes: map[string]status.Component{}, judged: map[string]bool{}, hidden: map[string]string{}, unread: map[string]string{}, awaited: map[string]string{}, finished: maps.Clone(in.HookStates),
	}
}

// through runs phases until one of them ends the rollout.
func (r *run) through(ctx context.Context, phases ...func(context.Context) error) {
	for _, phase := range phases {
		err := guarded(func() error { return phase(ctx) })
		if errors.Is(err, errStop) {
			break
		}
		if err != nil {
			r.failures = append(r.failures, err)
			r.result.Completion.Fault = ClusterFault(err)
			if fault, ok := r.panicked("", err); ok {
				r.result.Completion.Fault = fault
			}
			break
		}
	}
}

// ClusterFault is the fault of a rollout that the cluster does not let go on. A kind that
// cannot be read is one: of what is rendered, all may depend on it.
func ClusterFault(err error) status.Component {
	out := retrying("", oneLine(err.Error()))
	if _, ok := errors.AsType[*cluster.KindUnreadableError](err); ok {
		out.Reason = status.ReasonKindUnreadable
	}
	return out
}

// fault records what is wrong with the resource or the package as a whole.
func (r *run) fault(reason status.Reason, message string) {
	r.result.Completion.Fault = status.Component{State: status.Failed, Reason: reason, Message: message}
}

// finish assembles the result.
func (r *run) finish() Result {
	out := r.result
	r.inventory = r.relinked()
	out.Inventory = r.endings(r.inventory.Seen(r.in.Owner.Namespace, r.live.all()...))
	out.HookStates = r.hooksSoFar()
	out.NeedsFinalizer = r.needsFinalizer(r.inventory)
	if after := r.rollout.RequeueAfter; after != 0 {
		out.RequeueAfter = sooner(out.RequeueAfter, after)
	}
	out.Completion.Components = r.components()
	out.Completion.Change = r.change
	out.Completion.Own = r.own()
	out.Patches = r.patchReports()
	out.Completion.Patches = effective(out.Patches)
	if len(r.rollout.StatusFaults) > 0 && out.Completion.Fault.Reason == "" {
		out.Completion.Fault = status.Component{State: status.Failed, Reason: status.ReasonInvalidPackage, Message: r.rollout.StatusFaults.Error()}
	}
	if r.rollout.Unstored != "" && out.Completion.Fault.Reason == "" {
		out.Completion.Fault = status.Component{State: status.Failed, Reason: status.ReasonStatusTooLarge, Message: r.rollout.Unstored}
	}
	if r.resume > 0 {
		out.RequeueAfter = sooner(out.RequeueAfter, r.resume)
	}
	if len(r.unread) > 0 {
		out.RequeueAfter = sooner(out.RequeueAfter, retryAfter)
	}
	for _, c := range out.Completion.Components {
		switch c.Cause() {
		case status.ReasonKindNotServed, status.ReasonObjectGoing, status.ReasonOwnedByAnother:
			out.RequeueAfter = sooner(out.RequeueAfter, retryAfter)
		case status.ReasonObjectRejected:
			out.RequeueAfter = sooner(out.RequeueAfter, RejectedRetryAfter)
		default:
		}
	}
	return out
}

// own returns the author's status fields, or nil when they could not be evaluated
// over what is there.
func (r *run) own() map[string]any {
	switch {
	case r.graph == nil:
		return nil
	case r.rollout.Status == nil:
		return map[string]any{}
	}
	return r.rollout.Status
}

// retryAfter is when to look again for what no watch reports: a kind that is not
// served yet, an object of somebody else's that is in the way.
const retryAfter = 5 * time.Second

// RejectedRetryAfter is when to offer an object again that the API server refused: what
// refused it may have been a webhook that has changed since.
const RejectedRetryAfter = 5 * time.Minute

func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

// components returns the outcomes in the author's order.
func (r *run) components() []status.Component {
	var out []status.Component
	for _, c := range r.rollout.Components {
		if o, ok := r.outcomes[c.Name]; ok {
			o.Timeout, o.WaitsFor = c.Timeout, r.waitsFor(c, o)
			out = append(out, o)
		}
	}
	for _, h := range r.rollout.Hooks {
		if o, ok := r.outcomes[h.Component.Name]; ok {
			o.Timeout = h.Component.Timeout
			out = append(out, o)
		}
	}
	return out
}

// component returns a component of the current evaluation.
func (r *run) component(name string) (program.Component, bool) {
	for _, c := range r.rollout.Components {
		if c.Name == name {
			return c, true
		}
	}
	for _, h := range r.rollout.Hooks {
		if h.Component.Name == name {
			return h.Component, true
		}
	}
	return program.Component{}, false
}

// eventf records what happened to an object.
func (r *run) eventf(reason, format string, args ...any) {
	r.result.Events = append(r.result.Events, Event{Reason: reason, Message: fmt.Sprintf(format, args...)})
}
