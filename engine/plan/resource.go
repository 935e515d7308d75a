package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/status"
)

// A resourcePlan is the plan of one resource while it is made.
type resourcePlan struct {
	Options

	subject subject
	ref     cluster.Ref
	world   *dryrun.World
	// before is the resource before the new version was run.
	before  *unstructured.Unstructured
	changes []cluster.ObjectChange
	// old and new are what the versions have come to.
	old, new side
	// paused says that somebody has paused the resource, and unread that the API server has not returned something.
	paused bool
	unread atomic.Bool
	// cancelRun ends the run of a version: it would try for long what fails now.
	cancelRun context.CancelFunc
	mask      *diff.Mask
}

// resource plans one resource. One that is paused is planned as if the pause ended.
func (o Options) resource(ctx context.Context, s subject) (Resource, error) {
	t := &resourcePlan{Options: o, subject: s, ref: s.ref(), cancelRun: func() {}}
	out := Resource{Kind: t.ref.Kind, Namespace: t.ref.Namespace, Name: t.ref.Name, Class: Unchanged}
	if s.live != nil && s.live.GetDeletionTimestamp() != nil {
		out.Class = Deleting
		return out, nil
	}
	if err := t.prepare(ctx); err != nil {
		return out, fmt.Errorf("%s: %w", t.ref, err)
	}
	if refused := t.change(); refused != nil {
		out.Class, out.Problems = Invalid, refused
		return out, nil
	}
	if err := t.run(ctx); err != nil {
		return out, fmt.Errorf("%s: %w", t.ref, err)
	}
	t.mask = &diff.Mask{}
	t.mask.Learn(t.world.Cluster.Objects()...)
	for _, c := range t.changes {
		t.mask.Learn(c.Before, c.Object)
	}
	later, cause := t.undecided(ctx)
	out.Objects, out.Order, out.Undecided = append(t.objects(), later...), t.order(), cause
	t.classify(&out)
	return out, nil
}

// classify says what the change does to a resource as a whole.
func (t *resourcePlan) classify(out *Resource) {
	var invalid bool
	out.Problems, invalid = t.problems()
	if out.Undecided.Passes() && len(out.Problems) == 0 {
		out.Problems = []Problem{{Message: passingTexts[out.Undecided]}}
	}
	waits := t.waits()
	switch {
	case invalid:
		out.Class = Invalid
	case len(out.Problems) > 0:
		out.Class = Failing
	case len(waits) > 0:
		out.Class, out.Problems = Waiting, waits
	case t.subject.live == nil:
		out.Class = New
	case len(out.Objects)+len(out.Order) > 0:
		out.Class = Changed
	}
	if t.paused {
		out.Class = Paused
	}
}

// passingTexts say why a later plan may say more.
var passingTexts = map[Cause]string{
	Unread: "the API server has not returned all that is there", NoWorker: "there was no worker to evaluate it", Panicked: "planning it has panicked; please report this",
}

// prepare makes the world, and lets the old version do what it would do anyway.
func (t *resourcePlan) prepare(ctx context.Context) error {
	served := t.New
	if t.Old != nil && t.subject.live != nil {
		served = *t.Old
	}
	t.world = dryrun.New(t.ConfigMap, served.Program)
	t.world.ReadThrough(outageSource{t.Cluster, t}, t.Now, t.AssumeNamespaces)
	t.world.EvaluateWith(t.ref.GroupKind(), t.remember(served, &t.old))
	if t.subject.live == nil {
		return nil
	}
	if _, err := t.world.Put(t.resumed(served.admits.read(t.subject.live))); err != nil {
		return err
	}
	if t.Old == nil || t.knownToExceed() {
		return nil
	}
	return t.runSide(ctx, &t.old, func(dryrun.Step) {})
}

// knownToExceed reports whether the resource says that the old version takes too much for it. To see that once more would
// cost as much as an evaluation may, and a user may have many such resources.
func (t *resourcePlan) knownToExceed() bool {
	digest, _, _ := unstructured.NestedString(t.subject.live.Object, "status", "package", "digest")
	reason, message := status.StalledBy(statusOf(t.subject.live))
	if digest != t.Old.Program.Digest() || reason != status.ReasonEvaluationLimit && reason != status.ReasonEvaluationTooSlow {
		return false
	}
	t.old = side{state: t.subject.live, evaluationErr: &program.LimitError{Evaluated: true, Text: message}}
	return true
}

// resumed returns a resource whose pause has ended.
func (t *resourcePlan) resumed(u *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := u.GetAnnotations()
	if annotations[reconcile.AnnotationPaused] != "true" {
		return u
	}
	t.paused = true
	u = u.DeepCopy()
	delete(annotations, reconcile.AnnotationPaused)
	u.SetAnnotations(annotations)
	return u
}

// runSide lets a version act until nothing changes any more. That it does not come to rest is no error.
func (t *resourcePlan) runSide(ctx context.Context, s *side, show func(dryrun.Step)) error {
	var run context.Context
	run, t.cancelRun = context.WithCancel(ctx)
	defer t.cancelRun()
	err := t.world.Run(run, func(step dryrun.Step) {
		show(step)
		if step.Resource.Identity() == t.ref.Identity() {
			s.failure = step.Err
		}
	})
	s.state = t.world.Get(t.ref)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case run.Err() == nil:
		s.failure, s.restless = err, true
	}
	return nil
}

// change puts the resource as it is to be, and returns why an API server would refuse it.
func (t *resourcePlan) change() []Problem {
	t.before = t.world.Get(t.ref)
	next := t.before
	if given := t.subject.given; given != nil {
		next = created(given)
		if t.before != nil {
			next = replaced(t.before, given)
		}
	}
	if next == nil {
		return nil // the old version has let it go
	}
	if t.subject.given == nil {
		next = next.DeepCopy()
		next.SetGroupVersionKind(t.New.Program.GroupVersionKind()) // the cluster may not serve that yet
		if put, err := t.world.Put(t.resumed(t.New.admits.read(next))); err == nil {
			t.before = put
		}
		return nil
	}
	admitted, err := t.New.admits.write(next, t.before)
	if err == nil {
		admitted, err = t.world.Put(t.resumed(admitted))
	}
	if err != nil {
		return t.refused(next, err)
	}
	t.before = admitted
	return nil
}

// refused returns why an API server would refuse a resource: in the words of the package, which names the line, if
// it says so as well.
func (t *resourcePlan) refused(u *unstructured.Unstructured, err error) []Problem {
	said, failed := t.New.Evaluator().Evaluate(program.Session{CR: u.Object})
	if failed != nil || len(said.Invalid) == 0 {
		return []Problem{{Message: redact.Printable(err.Error())}}
	}
	var out []Problem
	for _, f := range said.Invalid {
		out = append(out, t.problem("", f))
	}
	return out
}

// created returns a resource without what only the API server sets, which ignores it when a resource is created.
func created(given *unstructured.Unstructured) *unstructured.Unstructured {
	out := given.DeepCopy()
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink",
	} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	return out
}

// replaced returns a live resource with the specification, labels and annotations of a given one.
func replaced(live, given *unstructured.Unstructured) *unstructured.Unstructured {
	out := live.DeepCopy()
	for field, value := range given.DeepCopy().Object {
		if field != "metadata" && field != "status" {
			out.Object[field] = value
		}
	}
	out.SetAnnotations(merged(out.GetAnnotations(), given.GetAnnotations()))
	out.SetLabels(merged(out.GetLabels(), given.GetLabels()))
	return out
}

// merged returns texts with others, which win. It may change the first.
func merged(texts, others map[string]string) map[string]string {
	if texts == nil {
		return others
	}
	maps.Copy(texts, others)
	return texts
}

// run lets the new version act until nothing changes any more.
func (t *resourcePlan) run(ctx context.Context) error {
	t.world.Swap(t.New.Program, t.remember(t.New, &t.new))
	return t.runSide(ctx, &t.new, func(s dryrun.Step) { t.changes = append(t.changes, s.Changes...) })
}

// remember returns what evaluates a version and notes what it has said last.
func (t *resourcePlan) remember(v Version, s *side) *rememberingPackage {
	return &rememberingPackage{Package: v.Evaluator(), of: t.ref, side: s, cancelRun: func() { t.cancelRun() }}
}

// rememberingPackage is a package that remembers what it has said last of a resource.
type rememberingPackage struct {
	reconcile.Package

	of        cluster.Ref
	side      *side
	cancelRun func()
}

// Evaluate implements rollout.Evaluator.
func (r *rememberingPackage) Evaluate(s program.Session) (program.Rollout, error) {
	out, err := r.Package.Evaluate(s)
	u := &unstructured.Unstructured{Object: s.CR}
	if u.GetName() == r.of.Name && u.GetNamespace() == r.of.Namespace {
		r.side.last, r.side.evaluationErr = out, err
	}
	_, unavailable := errors.AsType[*program.UnavailableError](err)
	if _, over := errors.AsType[*program.LimitError](err); over || unavailable { // the operator tries for hours what is too much
		r.cancelRun()
	}
	return out, err
}

// objects returns what happens to the objects, by component as far as it is known.
func (t *resourcePlan) objects() []Object {
	before, after := inventoryOf(t.before), inventoryOf(t.new.state)
	var out []Object
	for _, e := range dryrun.Effects(t.changes, nil) {
		_, component, found := after.Find(e.Ref, t.ref.Namespace)
		if !found {
			_, component, _ = before.Find(e.Ref, t.ref.Namespace)
		}
		o := t.object(component, e.Ref, e.Outcome)
		if e.Outcome == dryrun.Updated || e.Outcome == dryrun.Recreated {
			for _, f := range t.mask.Fields(e.Before, knownAfter(e.Before, e.After)) {
				if f.Path != orderPath { // Order says it
					o.Fields = append(o.Fields, f)
				}
			}
		}
		if e.Outcome == dryrun.Updated && len(o.Fields) == 0 {
			continue // only the marks of the engine, the status, or what a dump does not hold
		}
		out = append(out, o)
	}
	return append(out, t.orphaned()...)
}

// object returns an object without values of Secrets.
func (t *resourcePlan) object(component string, ref cluster.Ref, outcome dryrun.Outcome) Object {
	return Object{
		Component: t.mask.Text(component), Outcome: outcome,
		Kind: t.mask.Text(ref.Kind), Namespace: t.mask.Text(ref.Namespace), Name: t.mask.Text(ref.Name),
	}
}

// orderPath is the path of the annotation that says in which order objects are deleted whose resource has lost its
// status.
const orderPath = `metadata.annotations["` + ownership.AfterAnnotation + `"]`

// orphaned returns the objects that are in the inventory before and not afterwards, and are still there.
func (t *resourcePlan) orphaned() []Object {
	after := inventoryOf(t.new.state)
	var out []Object
	for component, e := range inventoryOf(t.before).Entries() {
		ref := e.Ref(t.ref.Namespace)
		if _, _, kept := after.Find(ref, t.ref.Namespace); !kept && t.world.Get(ref) != nil {
			out = append(out, t.object(component, ref, Orphaned))
		}
	}
	return out
}

// inventoryOf returns the inventory in the status of a resource, which is empty if it cannot be read.
func inventoryOf(u *unstructured.Unstructured) ownership.Inventory {
	inventory, _ := ownership.InventoryOf(u)
	return inventory
}

// order returns the components that exist before and afterwards and depend on others than before.
func (t *resourcePlan) order() []Order {
	before, after := map[string][]string{}, map[string][]string{}
	for _, g := range inventoryOf(t.before) {
		before[g.Component] = g.DependsOn
	}
	groups := inventoryOf(t.new.state)
	for _, g := range groups {
		after[g.Component] = g.DependsOn
	}
	var out []Order
	for _, g := range groups {
		was, known := before[g.Component]
		if !known {
			continue
		}
		o := Order{Component: t.mask.Text(g.Component), After: without(g.DependsOn, was), NoMore: without(was, g.DependsOn)}
		if len(o.After)+len(o.NoMore) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// without returns the names that are not among others, sorted.
func without(names, others []string) []string {
	out := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(others, n) })
	slices.Sort(out)
	return out
}

// problems returns what is wrong with the resource afterwards and was not before, and whether it is invalid.
func (t *resourcePlan) problems() (out []Problem, invalid bool) {
	before, after := statusOf(t.before), statusOf(t.new.state)
	was, _ := status.StalledBy(before)
	for _, invalid := range []struct {
		reason status.Reason
		faults fault.Faults
	}{{status.ReasonInvalidSpec, t.new.last.Invalid}, {status.ReasonInvalidConfig, t.new.last.Misconfigured}} {
		for _, f := range invalid.faults {
			if was != invalid.reason {
				out = append(out, t.problem("", f))
			}
		}
		if len(invalid.faults) > 0 {
			return out, len(out) > 0
		}
	}
	invalidIn := map[string]fault.Faults{}
	for _, c := range t.new.last.Components {
		if c.Rendering == program.RenderedInvalid {
			invalidIn[c.Name] = c.Faults
		}
	}
	known := inState(before, status.Failed, status.Retrying)
	for _, c := range inState(after, status.Failed, status.Retrying) {
		if slices.ContainsFunc(known, c.is) {
			continue
		}
		for _, f := range invalidIn[c.component] {
			out, invalid = append(out, t.problem(c.component, f)), true
		}
		if len(invalidIn[c.component]) == 0 {
			out = append(out, Problem{Component: t.mask.Text(c.component), Message: t.mask.Text(c.message)})
		}
	}
	return t.orStalled(out, was), invalid
}

// orStalled returns why the resource makes no progress as a whole, if no component says so.
func (t *resourcePlan) orStalled(out []Problem, was status.Reason) []Problem {
	reason, message := status.StalledBy(statusOf(t.new.state))
	switch {
	case len(out) > 0 || reason != "" && reason == was:
		return out
	case reason != "":
		return []Problem{{Message: t.mask.Text(string(reason) + ": " + message)}}
	case t.new.failure != nil:
		return []Problem{{Message: t.mask.Text(t.new.failure.Error())}}
	}
	return nil
}

// statusOf returns the status of a resource.
func statusOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil // it is gone
	}
	out, _, _ := unstructured.NestedMap(u.Object, "status")
	return out
}

// problem returns a fault as a problem.
func (t *resourcePlan) problem(component string, f fault.Fault) Problem {
	return ProblemOf(t.mask, component, f)
}

// waits returns what components wait for that did not wait before.
func (t *resourcePlan) waits() []Problem {
	waited := inState(statusOf(t.before), status.Waiting, status.Held)
	var out []Problem
	for _, c := range inState(statusOf(t.new.state), status.Waiting, status.Held) {
		if !slices.ContainsFunc(waited, func(w reported) bool { return w.component == c.component }) {
			out = append(out, Problem{Component: t.mask.Text(c.component), Message: t.mask.Text(c.message)})
		}
	}
	return out
}

// A reported component is what a status says of one.
type reported struct{ component, reason, message string }

// is reports whether another status says the same of the component.
func (r reported) is(o reported) bool { return r.component == o.component && r.reason == o.reason }

// inState returns the components that a status reports in one of some states.
func inState(of map[string]any, states ...status.State) []reported {
	components, _ := of["components"].([]any)
	var out []reported
	for _, c := range components {
		m, _ := c.(map[string]any)
		name, _ := m["name"].(string)
		reason, _ := m["reason"].(string)
		message, _ := m["message"].(string)
		if state, _ := m["state"].(string); slices.Contains(states, status.State(state)) {
			out = append(out, reported{name, reason, message})
		}
	}
	return out
}
