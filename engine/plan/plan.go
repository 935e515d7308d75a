package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/redact"
)

// A Snapshot is a cluster as it is.
type Snapshot interface {
	dryrun.Source
	// Resources returns the custom resources of a kind.
	Resources(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error)
}

// A Version is a version of a package.
type Version struct {
	Program *program.Program
	// Evaluates evaluates in place of the package; nil is the package itself.
	Evaluates reconcile.Package
	// CRD is its CustomResourceDefinition; nil means that resources get no defaults from it.
	CRD *apiextensionsv1.CustomResourceDefinition

	// admits does what an API server does that has the definition.
	admits *admission
}

// Evaluator returns what resources are evaluated by.
func (v Version) Evaluator() reconcile.Package {
	if v.Evaluates != nil {
		return v.Evaluates
	}
	return v.Program
}

// Options say what is planned.
type Options struct {
	Cluster Snapshot
	New     Version
	// Old is the version that the resources are served by; nil means that it is not known. Then everything that
	// the new version would do counts, also what the old one would do as well.
	Old *Version
	// Given are custom resources as they are to be. If there are any, they alone are planned.
	Given []*unstructured.Unstructured
	// Namespaces are those whose resources are planned.
	Namespaces object.Namespaces
	// ConfigMap names the operator's configuration; its zero value is none.
	ConfigMap types.NamespacedName
	// Now is the time of the plan.
	Now time.Time
	// Parallel is how many resources are planned at once; 0 is one.
	Parallel int
	// Progress is called with how many resources are done; it may be nil.
	Progress func(done, all int)
	// AssumeNamespaces plans as if the namespaces of objects existed, without reading them: an operator need not have the right to.
	AssumeNamespaces bool
	// Complete ends the plan at the first resource of which a later plan may say more: who wants all or nothing
	// need not wait for the rest while the API server is away. The resources behind it are left out.
	Complete bool
}

// Class is what a change does to a custom resource.
type Class string

// The classes.
const (
	// Unchanged resources stay as they are, with all their objects.
	Unchanged Class = "unchanged"
	// Changed resources have objects that are written, or another order.
	Changed Class = "changed"
	// New resources do not exist yet.
	New Class = "created"
	// Invalid resources do not satisfy the new version: nothing is written of them, or of the components that are wrong.
	Invalid Class = "invalid"
	// Failing resources have components that fail, or that the API server would refuse.
	Failing Class = "failing"
	// Waiting resources have components that wait for something that is not there, and did not before.
	Waiting Class = "waiting"
	// Paused resources are not reconciled until somebody ends the pause; what happens then is planned.
	Paused Class = "paused"
	// Deleting resources are being deleted; a plan says nothing of them.
	Deleting Class = "deleting"
)

// Classes are all classes, in the order in which they are listed.
var Classes = []Class{Invalid, Failing, Waiting, New, Changed, Paused, Deleting, Unchanged}

// A Plan is what a change does.
type Plan struct {
	Package  string `json:"package"`
	Digest   string `json:"digest"`
	Previous string `json:"previous,omitempty"`
	// Resources are sorted by namespace and name.
	Resources []Resource `json:"resources"`
	// Permissions are those that change; a plan without the old version has none.
	Permissions []Permission `json:"permissions,omitempty"`
	// Notes say what is not known.
	Notes []string `json:"notes,omitempty"`
}

// A Resource is what a change does to one custom resource.
type Resource struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Class     Class  `json:"class"`
	// Objects are the objects that are written.
	Objects []Object `json:"objects,omitempty"`
	// Order are the components that come behind others than before.
	Order []Order `json:"order,omitempty"`
	// Problems are why a resource is Invalid, Failing or Waiting.
	Problems []Problem `json:"problems,omitempty"`
	// Undecided is why the plan cannot say all of what becomes of the objects, or "".
	Undecided Cause `json:"undecided,omitempty"`
}

// The outcomes that a plan knows besides those of dry runs.
const (
	// Orphaned objects are left behind by the operator, because their policy says so.
	Orphaned dryrun.Outcome = "orphaned"
	// Delayed objects are deleted later: nothing renders them any more, and their component is not applied yet.
	Delayed dryrun.Outcome = "delayed"
	// Undecided objects may be deleted or recreated, or stay.
	Undecided dryrun.Outcome = "undecided"
)

// outcomes are all outcomes, in the order in which they are listed.
var outcomes = append(slices.Clone(dryrun.Outcomes), Orphaned, Delayed, Undecided)

// An Object is what a change does to one object.
type Object struct {
	Component string         `json:"component,omitempty"`
	Outcome   dryrun.Outcome `json:"outcome"`
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	// Fields are what differs in an object that exists before and afterwards.
	Fields []diff.Field `json:"fields,omitempty"`
}

// An Order is a component whose dependencies change.
type Order struct {
	Component string   `json:"component"`
	After     []string `json:"after,omitempty"`
	NoMore    []string `json:"noMore,omitempty"`
}

// A Problem is what is wrong with a resource.
type Problem struct {
	Component string `json:"component,omitempty"`
	Path      string `json:"path,omitempty"`
	Message   string `json:"message"`
	// File and Line are where the package says so.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// A Permission is one that is new, or no longer needed.
type Permission struct {
	Sign       string `json:"change"`
	Permission string `json:"permission"`
}

// Changes reports whether a change does anything.
func (p Plan) Changes() bool {
	return len(p.Permissions) > 0 || slices.ContainsFunc(p.Resources, func(r Resource) bool { return r.changes() })
}

// changes reports whether a resource is another one afterwards.
func (r Resource) changes() bool {
	switch r.Class {
	case Changed, New, Invalid, Failing, Waiting:
		return true
	case Paused:
		return len(r.Objects)+len(r.Order)+len(r.Problems) > 0
	case Unchanged, Deleting:
	}
	return false
}

// Count returns how many resources are of a class.
func (p Plan) Count(of Class) int {
	n := 0
	for _, r := range p.Resources {
		if r.Class == of {
			n++
		}
	}
	return n
}

// Affected returns the objects that have an outcome, as "Kind namespace/name".
func (p Plan) Affected(outcome dryrun.Outcome) []string {
	var out []string
	for _, r := range p.Resources {
		for _, o := range r.Objects {
			if o.Outcome == outcome {
				out = append(out, o.String())
			}
		}
	}
	return out
}

// String returns the object as a person writes it.
func (o Object) String() string {
	return cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: o.Kind}, Namespace: o.Namespace, Name: o.Name}.String()
}

// Make makes a plan. It errors if the snapshot cannot be read, a resource that was given cannot be planned, or
// the context ends.
func Make(ctx context.Context, o Options) (Plan, error) {
	out := Plan{Package: o.New.Program.Name(), Digest: o.New.Program.Digest(), Resources: []Resource{}}
	if o.Old != nil {
		out.Previous = o.Old.Program.Digest()
		if a, b := o.Old.Program.GroupVersionKind().GroupKind(), o.New.Program.GroupVersionKind().GroupKind(); a != b {
			return out, fmt.Errorf("the old package is for the kind %s, and the new one for %s: a plan compares two versions of one package", a, b)
		}
	}
	o.New.admits = &admission{crd: o.New.CRD}
	if o.Old != nil {
		old := *o.Old
		old.admits = &admission{crd: old.CRD}
		o.Old = &old
	}
	subjects, err := o.subjects(ctx)
	if err != nil {
		return out, err
	}
	out.Resources, err = o.each(ctx, subjects)
	if noted, ok := o.Cluster.(interface{ Notes() []string }); ok {
		out.Notes = append(out.Notes, noted.Notes()...)
	}
	return out, err
}

// A subject is a resource that is planned.
type subject struct {
	// live is nil if it does not exist yet, and given is nil if it stays as it is.
	live, given *unstructured.Unstructured
}

// ref returns the identity of the resource.
func (s subject) ref() cluster.Ref {
	if s.live != nil {
		return cluster.RefOf(s.live)
	}
	return cluster.RefOf(s.given)
}

// subjects returns the resources that are planned, by namespace and name.
func (o Options) subjects(ctx context.Context) ([]subject, error) {
	live, err := o.live(ctx)
	if err != nil {
		return nil, err
	}
	var out []subject
	known := map[cluster.Ref]*unstructured.Unstructured{}
	for _, u := range live {
		known[cluster.RefOf(u).Identity()] = u
		if len(o.Given) == 0 && o.Namespaces.Has(u.GetNamespace()) {
			out = append(out, subject{live: u})
		}
	}
	for _, u := range o.Given {
		if err := o.looksAt(u); err != nil {
			return nil, err
		}
		out = append(out, subject{known[cluster.RefOf(u).Identity()], u})
	}
	slices.SortFunc(out, func(a, b subject) int {
		return cmp.Or(strings.Compare(a.ref().Namespace, b.ref().Namespace), strings.Compare(a.ref().Name, b.ref().Name))
	})
	for i := 1; i < len(out); i++ {
		if out[i].ref().Identity() == out[i-1].ref().Identity() {
			return nil, fmt.Errorf("%s is there twice", out[i].ref())
		}
	}
	return out, nil
}

// looksAt errors if a resource that is given is where the plan does not look: it would be taken for a new one although it may
// exist.
func (o Options) looksAt(given *unstructured.Unstructured) error {
	ref := cluster.RefOf(given)
	if ref.Namespace == "" {
		return nil // what is in no namespace is read whatever they are
	}
	if !o.Namespaces.Has(ref.Namespace) {
		return fmt.Errorf("%s is in none of the namespaces that the plan looks at (%s), so it is not known whether it exists", ref, o.Namespaces)
	}
	if part, ok := o.Cluster.(interface{ Covers(object.Namespaces) error }); ok {
		if err := part.Covers(object.Namespaces{ref.Namespace}); err != nil {
			return fmt.Errorf("whether %s exists is not known: %w", ref, err)
		}
	}
	return nil
}

// live returns the resources that exist. If the cluster does not serve the version of the kind that is new, they are
// those of the old one.
func (o Options) live(ctx context.Context) ([]*unstructured.Unstructured, error) {
	out, err := o.Cluster.Resources(ctx, o.New.Program.GroupVersionKind())
	if cluster.IsKindNotServed(err) && o.Old != nil {
		out, err = o.Cluster.Resources(ctx, o.Old.Program.GroupVersionKind())
	}
	if cluster.IsKindNotServed(err) {
		return nil, nil
	}
	return out, err
}

// each plans the resources, several at a time, and returns them in their order.
func (o Options) each(ctx context.Context, subjects []subject) ([]Resource, error) {
	out, failures := make([]Resource, len(subjects)), make([]error, len(subjects))
	var mu sync.Mutex
	done := 0
	var incomplete atomic.Bool
	group := errgroup.Group{}
	group.SetLimit(max(1, o.Parallel))
	for i, s := range subjects {
		if ctx.Err() != nil || incomplete.Load() {
			break
		}
		group.Go(func() error {
			if failures[i] = ctx.Err(); failures[i] != nil || incomplete.Load() {
				return nil
			}
			out[i], failures[i] = o.guarded(ctx, s)
			incomplete.CompareAndSwap(false, o.Complete && out[i].Undecided.Passes())
			mu.Lock()
			defer mu.Unlock()
			if done++; o.Progress != nil {
				o.Progress(done, len(subjects))
			}
			return nil
		})
	}
	_ = group.Wait() // the first failure in time would make the result depend on timing
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(r Resource) bool { return r.Kind == "" }), errors.Join(failures...)
}

// guarded is resource where a panic, and an object that cannot be read, make one resource fail and not the plan.
func (o Options) guarded(ctx context.Context, s subject) (out Resource, err error) {
	ref := s.ref()
	failing := Resource{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Class: Failing}
	defer func() {
		if p := recover(); p != nil { // its text may have a value of a Secret
			failing.Problems, failing.Undecided = []Problem{{Message: passingTexts[Panicked]}}, Panicked
			out, err = failing, nil
		}
	}()
	out, err = o.resource(ctx, s)
	if err != nil && unreadable(err) {
		failing.Problems = []Problem{{Message: redact.Printable(err.Error())}}
		return failing, nil
	}
	return out, err
}
