package packages

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
)

// A Candidate is a version of a package that has passed its checks.
type Candidate struct {
	Program  *program.Program
	CRD      *apiextensionsv1.CustomResourceDefinition
	Warnings fault.Faults
}

// An Examiner checks packages and installs their definitions.
type Examiner interface {
	// Examine checks a version of a package where it can do no harm, and compiles it. It errors with
	// fault.Faults if the package is wrong.
	Examine(ctx context.Context, s *source.Snapshot) (Candidate, error)
	// Slots returns how many contents it examines at a time.
	Slots() int
	// InstallCRD makes the cluster serve a definition. It errors with a ForeignCRDError if the definition
	// of the cluster is not that of a package. If it is that of another package, which its label names, it
	// is replaced unless mayReplace errors.
	InstallCRD(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition, mayReplace func(ctx context.Context, owner string) error) error
	// Defined returns the kinds whose definitions have the label of a package. Only who may write
	// CustomResourceDefinitions can forge that.
	Defined(ctx context.Context, name string) ([]schema.GroupVersionKind, error)
}

// A Server runs the controllers of packages; controller.Manager is one.
type Server interface {
	// ServedBy returns where the files of the package that serves a kind are from, or "".
	ServedBy(kind schema.GroupKind) string
	// Serve begins the controller of a package.
	Serve(p *program.Program) error
	// ServeOutdated is Serve for an earlier version; fault says what is wrong with the present one.
	ServeOutdated(p *program.Program, fault string) error
	// Swap makes the controller of a package use another version of it.
	Swap(ctx context.Context, was, p *program.Program) error
	// Outdated says what is wrong with the present files of a package, or, with "", that nothing is.
	Outdated(ctx context.Context, p *program.Program, fault string) error
	// Withdraw ends the controller of a package, and returns when none of its reconciles runs.
	Withdraw(ctx context.Context, p *program.Program) error
	// Broken says that there is no version of a package that can be served.
	Broken(origin, name, fault string)
	// Mended says that there is one, of a kind.
	Mended(origin, kind string)
	// Resources returns the custom resources of a package, from the cache of its controller.
	Resources(ctx context.Context, kind schema.GroupVersionKind) ([]Resource, error)
	// Remaining returns at most limit of the custom resources of a kind that the API server has; there are
	// none if it does not serve the kind.
	Remaining(ctx context.Context, kind schema.GroupVersionKind, limit int) ([]Resource, error)
}

// A Resource is a custom resource of a package.
type Resource struct {
	types.NamespacedName

	// Digest is the version of the package that reconciled it last, or "".
	Digest string
}

// ConfigMaps reads ConfigMaps, and watches those that Packages refer to.
type ConfigMaps interface {
	// Get returns a ConfigMap, or nil if there is none, and refers to it from now on, and to no other.
	Get(ctx context.Context, name string, ref ConfigMapReference) (*unstructured.Unstructured, error)
	// Forget ends the reference of a Package.
	Forget(name string)
}

// Registries fetches modules.
type Registries interface {
	source.Modules
	// Fetch returns what a source names. It errors with a registry.Error.
	Fetch(ctx context.Context, s registry.Source) (*registry.Artifact, error)
}

// Secrets reads the Secrets with the credentials for registries.
type Secrets interface {
	// PullSecret returns the credentials in a Secret of the operator's namespace.
	PullSecret(ctx context.Context, name string) ([]byte, error)
}

// A Recorder records events.
type Recorder interface {
	// Record records one event of an object.
	Record(u *unstructured.Unstructured, e rollout.Event)
}

// A Reconciler serves Packages. Step is safe for concurrent use for different Packages.
type Reconciler struct {
	// Cluster has the Packages that the Selector selects, and Revisions the PackageRevisions.
	Cluster, Revisions cluster.Cluster
	// Selector selects by labels.
	Selector labels.Selector

	ConfigMaps ConfigMaps
	// Overlays are unified with each Package; nil if there are none.
	Overlays Overlays
	// Registries has modules, and Secrets the credentials for those of sources.
	Registries Registries
	Secrets    Secrets
	Examiner   Examiner
	Server     Server
	Recorder   Recorder
	// Enqueue has Step called again for a Package.
	Enqueue func(name string)
	Log     logr.Logger
	Now     func() time.Time

	mu     sync.Mutex
	states map[string]*state
	// claims are the Packages that serve a kind, or are about to.
	claims map[schema.GroupKind]string
	first  firstLoads
	exams  examQueue
	// fetches has a place for each fetch that runs.
	fetches fetchSlots
}

// state is what is known of one Package between steps. Only one step of a Package runs at a time.
type state struct {
	uid types.UID
	// exams are the examinations of contents, by their digests.
	exams map[string]*examination
	// content is the content of the source that was read last.
	content content
	// fetch is what is being fetched, or nil.
	fetch *fetch
	// served is the version that the Server serves, or nil.
	served *program.Program
	// crd is the definition of what is served, and defined the digest of the content whose definition was
	// written last.
	crd     *apiextensionsv1.CustomResourceDefinition
	defined string
	// outdated is what the resources are told is wrong with the present content, or "".
	outdated string
	// broken is what the Server was told is wrong while nothing is served, or "".
	broken string
	// revisions are those of the cluster, the newest first, once they have been read.
	revisions     []revision
	revisionsRead bool
}

// Step takes a Package one step further, and returns when the next one is due, 0 for never.
func (r *Reconciler) Step(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	name := key.Name
	u, err := r.Cluster.GetCached(ctx, cluster.Ref{GroupVersionKind: Kind, Name: name})
	if err != nil {
		return 0, err
	}
	if u == nil || !r.Selector.Matches(labels.Set(u.GetLabels())) { // a read that does not wait for the cache returns any
		defer r.first.tried(name)
		return 0, r.forget(ctx, name)
	}
	p, wrong := Parse(u)
	if p.deleted() && !hasFinalizer(p) {
		defer r.first.tried(name)
		return 0, r.forget(ctx, name) // others may keep it
	}
	s, err := r.stateOf(ctx, p)
	if err != nil {
		return 0, err
	}
	out := &result{}
	if wrong != nil {
		out.problem = &problem{stage: reading, reason: ReasonInvalid, message: wrong.Error()}
	} else {
		r.take(ctx, p, s, out)
	}
	r.stand(ctx, p, s, out)
	if out.pending {
		return 0, nil // the end of the examination is an event
	}
	defer r.first.tried(name)
	if p.deleted() {
		r.retire(ctx, p, s, out)
	}
	if out.gone {
		return 0, r.forget(ctx, name)
	}
	if err := r.report(ctx, p, s, out); err != nil {
		return 0, err
	}
	return out.again(s, r.Now()), out.err()
}

// stateOf returns the state of a Package. One that was deleted and created again begins anew.
func (r *Reconciler) stateOf(ctx context.Context, p Package) (*state, error) {
	r.mu.Lock()
	s := r.states[p.Name]
	r.mu.Unlock()
	if s != nil && s.uid == p.object.GetUID() {
		return s, nil
	}
	if err := r.forget(ctx, p.Name); err != nil {
		return nil, err
	}
	s = &state{uid: p.object.GetUID(), exams: map[string]*examination{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.states == nil {
		r.states = map[string]*state{}
	}
	r.states[p.Name] = s
	return s, nil
}

// forget ends what a Package has begun: it is gone, or another process serves it.
func (r *Reconciler) forget(ctx context.Context, name string) error {
	r.mu.Lock()
	s := r.states[name]
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	s.keepExams()
	s.endFetch()
	if err := r.withdraw(ctx, name, s); err != nil {
		return err
	}
	r.ConfigMaps.Forget(name)
	if r.Overlays != nil {
		r.Overlays.Forget(name)
	}
	if s.broken != "" {
		r.Server.Broken(Package{Name: name}.origin(), name, "there is no Package "+name+" any more")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, name)
	for kind, by := range r.claims {
		if by == name {
			delete(r.claims, kind)
		}
	}
	return nil
}

// withdraw ends the controller of a Package.
func (r *Reconciler) withdraw(ctx context.Context, name string, s *state) error {
	if s.served == nil {
		return nil
	}
	if err := r.Server.Withdraw(ctx, s.served); err != nil {
		return fmt.Errorf("package %s: %w", name, err)
	}
	r.Log.Info("package withdrawn", "package", name, "kind", s.served.GroupVersionKind().GroupKind().String())
	s.served, s.outdated = nil, ""
	return nil
}

// stand serves what was accepted last if the content of a Package cannot be served.
func (r *Reconciler) stand(ctx context.Context, p Package, s *state, out *result) {
	if out.pending || out.problem == nil {
		return
	}
	r.fallBack(ctx, p, s, out)
	if s.served != nil && out.problem.stage == holding && s.served.Digest() == s.content.digest() {
		out.problem = nil // it was held back only because this process has just begun
	}
}

// take serves the content of a Package.
func (r *Reconciler) take(ctx context.Context, p Package, s *state, out *result) {
	if out.problem = r.read(ctx, p, s); out.problem != nil {
		return
	}
	same := s.served != nil && s.served.Digest() == s.content.digest()
	if same {
		r.claimOnly(p.Name, s.served.GroupVersionKind().GroupKind())
	}
	switch {
	case same && s.outdated == "" && s.defined == s.served.Digest():
		return
	case same:
		out.problem = r.mend(ctx, p, s)
		return
	case p.deleted():
		out.problem = &problem{stage: holding, reason: ReasonDeleting, message: "the Package is being deleted, and takes over no changes"}
		return
	case p.Paused:
		out.problem = &problem{stage: holding, reason: ReasonPaused, message: "the Package is paused, and takes over no changes"}
		return
	}
	exam, err := r.examine(ctx, p, s, s.content.snapshot)
	if err != nil {
		out.problem = &problem{stage: loading, reason: ReasonNotKept, message: err.Error(), err: err}
		return
	}
	if out.pending = !exam.ended(); out.pending {
		return
	}
	if exam.err != nil {
		out.problem = broken(exam)
		return
	}
	if out.problem = r.approval(ctx, p, s); out.problem == nil {
		out.problem = r.accept(ctx, p, s, exam.candidate)
	}
}

// approval returns why a content that has passed its checks is not taken over yet, or nil. What was accepted
// last is approved, and so is the first content.
func (r *Reconciler) approval(ctx context.Context, p Package, s *state) *problem {
	digest := s.content.digest()
	if p.Update != Manual || p.ApprovedDigest == digest {
		return nil
	}
	last, err := r.lastGood(ctx, p, s)
	if err != nil {
		return &problem{stage: loading, reason: ReasonNotKept, message: err.Error(), err: err}
	}
	if last == nil || last.digest == digest {
		return nil
	}
	return &problem{stage: holding, reason: ReasonAwaitingApproval, message: digest + " has passed its checks, and waits for spec.approvedDigest"}
}

// mend says that the content of the source is what is served, again.
func (r *Reconciler) mend(ctx context.Context, p Package, s *state) *problem {
	if err := r.define(ctx, p, s); err != nil {
		return notInstalled(err)
	}
	if err := r.Server.Outdated(ctx, s.served, ""); err != nil {
		return &problem{stage: serving, reason: ReasonNotServed, message: err.Error(), err: err}
	}
	s.outdated = ""
	return nil
}

// define writes the definition of what is served again, if that of another content took its place: objects
// would lose the fields that the other one lacks.
func (r *Reconciler) define(ctx context.Context, p Package, s *state) error {
	if s.defined == s.served.Digest() {
		return nil
	}
	if err := r.install(ctx, p, s.crd); err != nil {
		return err
	}
	s.defined = s.served.Digest()
	return nil
}

// broken returns why a package is not accepted.
func broken(e *examination) *problem {
	if faults, ok := errors.AsType[fault.Faults](e.err); ok {
		return &problem{stage: loading, reason: ReasonBroken, message: faults.Error(), faults: faults}
	}
	// A worker has died. That may be due to the machine, so it is tried again.
	return &problem{stage: loading, reason: ReasonCheckFailed, message: e.err.Error(), again: e.again()}
}

// accept serves a candidate, in place of the version that is served.
func (r *Reconciler) accept(ctx context.Context, p Package, s *state, c Candidate) *problem {
	kind := c.Program.GroupVersionKind()
	if wrong := r.leavesKind(ctx, s, kind); wrong != nil {
		return wrong
	}
	if wrong := r.claim(ctx, p, s, kind.GroupKind()); wrong != nil {
		return wrong
	}
	if err := r.setFinalizer(ctx, p); err != nil {
		return &problem{stage: serving, reason: ReasonNotServed, message: err.Error(), err: err}
	}
	s.defined = c.Program.Digest() // or not: if it fails, nobody knows what the cluster has
	if err := r.install(ctx, p, c.CRD); err != nil {
		return notInstalled(err)
	}
	if err := r.keep(ctx, p, s, c.Program.Snapshot()); err != nil {
		return &problem{stage: loading, reason: ReasonNotKept, message: err.Error(), err: err}
	}
	if err := r.serve(ctx, p, s, c.Program); err != nil {
		return &problem{stage: serving, reason: ReasonNotServed, message: err.Error(), err: err}
	}
	s.crd = c.CRD
	for _, w := range c.Warnings {
		r.Log.Info("the package has a warning", "package", p.Name, "warning", w.Error())
	}
	s.keepExams()
	r.prune(ctx, p, s)
	return nil
}

// serve makes the Server use a version of a package, and ends the one of another kind.
func (r *Reconciler) serve(ctx context.Context, p Package, s *state, next *program.Program) error {
	was := s.served
	kind := next.GroupVersionKind()
	if was != nil && was.GroupVersionKind() != kind {
		if err := r.withdraw(ctx, p.Name, s); err != nil {
			return err
		}
		r.release(was.GroupVersionKind().GroupKind(), kind.GroupKind())
	}
	var err error
	if s.served == nil {
		err = r.Server.Serve(next)
	} else {
		err = r.Server.Swap(ctx, s.served, next)
	}
	if err != nil {
		return err
	}
	s.served, s.outdated, s.broken = next, "", ""
	r.Server.Mended(p.origin(), kind.GroupKind().String())
	r.Log.Info("package loaded", "package", p.Name, "kind", kind.GroupKind().String(), "version", kind.Version, "digest", next.Digest())
	r.Recorder.Record(p.object, rollout.Event{Reason: string(ReasonLoaded), Message: fmt.Sprintf("serves %s by %s", kind.GroupKind(), next.Digest())})
	return nil
}

// fallBack keeps serving what was accepted last, and has the resources say why.
func (r *Reconciler) fallBack(ctx context.Context, p Package, s *state, out *result) {
	told := out.problem.location(p.Name)
	if s.served == nil {
		r.restore(ctx, p, s, told, out)
	} else if err := r.goOn(ctx, p, s, told); err != nil {
		out.problem.err = errors.Join(out.problem.err, err)
		return
	}
	if s.served == nil && !out.pending && told != "" && told != s.broken {
		r.Server.Broken(p.origin(), p.Name, told)
		s.broken = told
	}
}

// goOn keeps serving a version, with its own definition, and has the resources say what is wrong with the
// present content.
func (r *Reconciler) goOn(ctx context.Context, p Package, s *state, told string) error {
	if err := r.define(ctx, p, s); err != nil {
		return err
	}
	if s.outdated == told {
		return nil
	}
	if err := r.Server.Outdated(ctx, s.served, told); err != nil {
		return err
	}
	s.outdated = told
	return nil
}

// restore serves what was accepted last after a restart.
func (r *Reconciler) restore(ctx context.Context, p Package, s *state, told string, out *result) {
	last, err := r.lastGood(ctx, p, s)
	if err != nil {
		out.problem.err = errors.Join(out.problem.err, err)
		return
	}
	if last == nil || out.problem.stage != holding && last.digest == s.content.digest() {
		return
	}
	exam, err := r.examine(ctx, p, s, last.snapshot)
	if err != nil {
		out.problem.err = errors.Join(out.problem.err, err)
		return
	}
	if out.pending = !exam.ended(); out.pending {
		return
	}
	if exam.err != nil {
		out.problem.addMessage(fmt.Sprintf("%s, which was accepted last, cannot be used either: %v", last.digest, exam.err))
		return
	}
	next := exam.candidate.Program
	if wrong := r.claim(ctx, p, s, next.GroupVersionKind().GroupKind()); wrong != nil {
		out.problem.addMessage(wrong.message)
		out.problem.again = wrong.again
		return
	}
	if err = r.setFinalizer(ctx, p); err == nil {
		err = r.install(ctx, p, exam.candidate.CRD)
	}
	if err == nil {
		err = r.Server.ServeOutdated(next, told)
	}
	if err != nil {
		out.problem.err = errors.Join(out.problem.err, err)
		return
	}
	s.served, s.crd, s.defined, s.outdated, s.broken = next, exam.candidate.CRD, next.Digest(), told, ""
	r.Server.Mended(p.origin(), next.GroupVersionKind().GroupKind().String())
	r.Log.Info("the version that was accepted last is served", "package", p.Name, "digest", next.Digest())
}
