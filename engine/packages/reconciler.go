package packages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
)

// A Reconciler serves Packages. Reconcile is safe for concurrent use for different Packages.
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
	Versions   Versions
	Accounts   Accounts
	// Definitions says which of what is served are gone; nil is none.
	Definitions Definitions
	Planner     Planner
	Recorder    Recorder
	// Observer is notified of the states of Packages and their canaries; it may be nil.
	Observer Observer
	// Namespace is that of the operator, the default of the ServiceAccounts of Packages; it may be "".
	Namespace string
	// Enqueue has Reconcile called again for a Package.
	Enqueue func(name string)
	Log     logr.Logger
	Now     func() time.Time
	// Followed says that other processes Follow, so that they have to be told what a canary tries.
	Followed bool
	// Holds are for a process that follows until it leads, and decides then; nil is for one that does only one of both.
	Holds Holds
	// Begun knows how far the Packages are that the process has found.
	Begun Begun

	mu     sync.Mutex
	states map[string]*state
	claims claims
	first  firstLoads
	exams  examQueue
	// fetches has a place for each fetch that runs.
	fetches slots
	// plans has a place for the plan that is being made.
	plans slots
}

// state is what is known of one Package between reconciles. Only one reconcile of a Package runs at a time.
type state struct {
	uid types.UID
	// follows says that another process decides. What it is has come from Follow, and not from Reconcile.
	follows bool
	// unread is the generation whose spec could not be read when it was followed last, or 0.
	unread int64
	// account is the one that sends the requests for the resources.
	account object.Account
	// exams are the examinations of contents, by their digests.
	exams map[string]*examination
	// content is the content of the source that was read last.
	content content
	// fetch is what is being fetched, or nil.
	fetch *fetch
	// plan is what a content was held back for last, or nil.
	plan *planning
	// served is the version that the Server serves, or nil.
	served *program.Program
	// crd is the definition of what is served, and defined the digest of the content whose definition was
	// written last.
	crd     *apiextensionsv1.CustomResourceDefinition
	defined string
	// gone says that the cluster has lost the definition, and nobody has written it since.
	gone bool
	// outdated is what the resources are told is wrong with the present content, or "".
	outdated string
	// broken is what the Server was told is wrong while nothing is served, or "".
	broken string
	// revisions are those of the cluster, the newest first, once they have been read.
	revisions     []revision
	revisionsRead bool
	// canary is the canary of a content, or nil, and servedCanary is nil unless it is in progress.
	canary       *canary
	servedCanary *servedCanary
	// tried is the content of a canary that was kept for those who follow.
	tried tried
	// pinned are the kept versions that resources are pinned to, by digest, and pinsTold what the Server was told of them.
	pinned       map[string]*pinned
	reportedPins string
}

// find returns a Package, and what is wrong with it. It forgets one that is gone or is not served here, and returns none.
func (r *Reconciler) find(ctx context.Context, name string, tried func(string)) (p Package, wrong, err error) {
	u, err := r.Cluster.GetCached(ctx, cluster.Ref{GroupVersionKind: Kind, Name: name})
	if err != nil {
		return Package{}, nil, err
	}
	if u != nil && r.Selector.Matches(labels.Set(u.GetLabels())) { // a read that does not wait for the cache returns any
		if p, wrong = Parse(u); !p.deleted() || hasFinalizer(p) {
			return p, wrong, nil
		} // a deleted one without the finalizer is done, although other finalizers may keep the object
	}
	defer tried(name)
	return Package{}, nil, r.forget(ctx, name)
}

// Reconcile takes a Package one step further, and returns when the next one is due, 0 for never.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	name, tried := key.Name, triedIn(&r.first, &r.Begun.first)
	p, wrong, err := r.find(ctx, name, tried)
	if err != nil || p.object == nil {
		return 0, err
	}
	account, unknown := accountOf(p.object, r.Namespace)
	s, err := r.ownState(ctx, p, account, unknown)
	if err != nil {
		return 0, err
	}
	p.account = s.account
	s.lookForDefinition(p, r.Definitions)
	out := &result{}
	if wrong = errors.Join(unknown, wrong); wrong != nil {
		out.problem, out.unread = &problem{stage: reading, reason: ReasonInvalid, message: wrong.Error()}, true
	} else {
		r.serveContent(ctx, p, s, out)
	}
	if !out.planned {
		s.endPlan() // nobody waits for it
	}
	if unknown != nil && s.served == nil {
		tried(name)
		return 0, r.report(ctx, p, s, out) // nothing is done without knowing the account
	}
	r.serveLastGood(ctx, p, s, out)
	if out.pending {
		return 0, nil // the end of the examination is an event
	}
	defer tried(name)
	if p.deleted() {
		r.finalize(ctx, p, s, out)
	}
	r.useAccount(s, out)
	if out.gone {
		return 0, r.forget(ctx, name)
	}
	if err := r.pin(ctx, p, s); err != nil {
		out.addError(err)
	}
	observe(r.Observer, p, s)
	if err := r.report(ctx, p, s, out); err != nil {
		return 0, err
	}
	if err := r.keeper().endTried(ctx, p, s); err != nil {
		return 0, err
	}
	return out.again(s, r.Now()), out.err()
}

// stateOf returns the state of a Package. One that was deleted and created again starts over, and so does one that has another
// ServiceAccount: nothing that was read as the one may serve the other. While the ServiceAccount is unknown, the last state stays.
func (r *Reconciler) stateOf(ctx context.Context, p Package, account object.Account, unknown error) (*state, error) {
	r.mu.Lock()
	s := r.states[p.Name]
	r.mu.Unlock()
	if s != nil && s.uid == p.object.GetUID() && (s.account == account || unknown != nil) {
		return s, nil
	}
	if err := r.forget(ctx, p.Name); err != nil {
		return nil, err
	}
	s = &state{uid: p.object.GetUID(), account: account, exams: map[string]*examination{}, canary: restoredCanary(p, r.Now())}
	if s.canary != nil {
		s.tried.digest = s.canary.digest // the process before may have kept it
	}
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
	s.endPlan()
	s.keepPinned(nil)
	if r.Observer != nil {
		r.Observer.NoCanary(name)
		r.Observer.NoPackage(name)
	}
	if err := r.withdraw(ctx, name, s); err != nil {
		return err
	}
	r.ConfigMaps.Forget(name)
	if r.Overlays != nil {
		r.Overlays.Forget(name)
	}
	if s.broken != "" {
		r.Server.ReportBroken(Package{Name: name}.origin(), name, "there is no Package "+name+" any more")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, name)
	r.claims.only(name, schema.GroupKind{})
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
	s.served, s.outdated, s.servedCanary, s.reportedPins = nil, "", nil, ""
	s.keepPinned(nil)
	return nil
}

// serveLastGood serves what was accepted last if the content of a Package cannot be served.
func (r *Reconciler) serveLastGood(ctx context.Context, p Package, s *state, out *result) {
	if out.pending || out.problem == nil {
		return
	}
	r.fallBack(ctx, p, s, out)
	r.trust().sayUnverified(p, s, out.problem)
	if s.served != nil && out.problem.stage == holding && s.served.Digest() == s.content.digest() {
		out.problem = nil // it was held back only because this process has just begun
	}
}

// serveContent serves the content of a Package.
func (r *Reconciler) serveContent(ctx context.Context, p Package, s *state, out *result) {
	from := sources{r.trust(), r.ConfigMaps, r.Overlays, r.Secrets, r.Enqueue, r.Now, &r.fetches}
	if out.problem = from.read(ctx, p, s); out.problem != nil {
		out.unread = true
		r.canaryWithoutContent(ctx, p, s, out)
		return
	}
	same := s.served != nil && s.served.Digest() == s.content.digest()
	if same {
		r.claims.only(p.Name, s.served.GroupVersionKind().GroupKind())
	}
	switch {
	case same:
		if out.problem = r.dropCanary(ctx, p, s); out.problem == nil && (s.outdated != "" || !s.isDefined()) {
			out.problem = r.clearOutdated(ctx, p, s)
		}
		if out.problem == nil {
			out.problem = r.keeper().noteProvenance(ctx, p, s)
		}
		return
	case p.deleted():
		out.problem = &problem{stage: holding, reason: ReasonDeleting, message: "the Package is being deleted, and takes over no changes"}
		return
	case p.Paused:
		out.problem = &problem{stage: holding, reason: ReasonPaused, message: "the Package is paused, and takes over no changes"}
		return
	}
	if !s.canary.is(s.content.digest()) {
		if out.problem = r.dropCanary(ctx, p, s); out.problem != nil {
			return
		}
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
	if out.problem = r.approval(ctx, p, s); out.problem != nil {
		r.canaryWithoutContent(ctx, p, s, out)
		return
	}
	r.admit(ctx, p, s, exam.candidate, out)
}

// approval returns why a content that has passed its checks is not taken over yet, or nil. What was accepted
// last is approved, and so is the first content.
func (r *Reconciler) approval(ctx context.Context, p Package, s *state) *problem {
	digest := s.content.digest()
	if p.Update != Manual || p.ApprovedDigest == digest {
		return nil
	}
	last, err := r.keeper().lastGood(ctx, p, s)
	if err != nil {
		return &problem{stage: loading, reason: ReasonNotKept, message: err.Error(), err: err}
	}
	if last == nil || last.digest == digest {
		return nil
	}
	return &problem{stage: holding, reason: ReasonAwaitingApproval, message: digest + " has passed its checks, and waits for spec.approvedDigest"}
}

// clearOutdated reports that the content of the source is what is served again.
func (r *Reconciler) clearOutdated(ctx context.Context, p Package, s *state) *problem {
	if err := r.define(ctx, p, s); err != nil {
		return notInstalled(err)
	}
	if err := r.Server.ReportOutdated(ctx, s.served, ""); err != nil {
		return &problem{stage: serving, reason: ReasonNotServed, message: err.Error(), err: err}
	}
	s.outdated = ""
	return nil
}

// define writes the definition of what is served again, if that of another content took its place: objects
// would lose the fields that the other one lacks.
func (r *Reconciler) define(ctx context.Context, p Package, s *state) error {
	wanted, of := s.wanted()
	if s.defined == of {
		return nil
	}
	if err := r.install(ctx, p, s, wanted); err != nil {
		return err
	}
	s.defined = of
	return nil
}

// isDefined reports whether the cluster has the definition of what is served.
func (s *state) isDefined() bool {
	_, of := s.wanted()
	return s.defined == of
}

// wanted returns the definition of what is served, which a canary and pinned versions can work with, too, and identifies it.
func (s *state) wanted() (*definition, string) {
	out, of := s.crd, s.served.Digest()
	if s.servedCanary != nil {
		out, of = s.servedCanary.both, of+" and "+s.servedCanary.candidate.Program.Digest()
	}
	for _, digest := range slices.Sorted(maps.Keys(s.pinned)) {
		if s.pinned[digest].definition == nil {
			continue
		}
		if both, err := reportingToo(out, s.pinned[digest].definition); err == nil {
			out, of = both, of+" and "+digest
		}
	}
	return out, of
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
	if err := r.keeper().mayKeep(ctx, p, s, c.Program.Snapshot()); err != nil {
		return notKept(err)
	}
	r.Accounts.ActAs(kind.GroupKind(), p.account)
	s.defined = c.Program.Digest() // if install fails, the cluster may have either definition, so the old digest must not stay
	if err := r.install(ctx, p, s, c.CRD); err != nil {
		return notInstalled(err)
	}
	if err := r.keeper().keep(ctx, p, s, c.Program.Snapshot()); err != nil {
		return notKept(err)
	}
	if err := r.serve(ctx, p, s, c.Program); err != nil {
		return &problem{stage: serving, reason: ReasonNotServed, message: err.Error(), err: err}
	}
	s.crd = c.CRD
	r.promoted(p, s)
	for _, w := range c.Warnings {
		r.Log.Info("the package has a warning", "package", p.Name, "warning", w.Error())
	}
	s.keepExams()
	r.keeper().prune(ctx, p, s)
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
		r.claims.release(was.GroupVersionKind().GroupKind(), kind.GroupKind())
	}
	var err error
	if s.served == nil {
		if err = r.allowPins(ctx, p, s, kind.GroupKind()); err == nil {
			err = held(r.Holds, s, kind.GroupKind(), func() error { return r.Server.Serve(next) })
		}
	} else {
		err = r.Server.Swap(ctx, s.served, next)
	}
	if err != nil {
		return err
	}
	s.served, s.outdated, s.broken = next, "", ""
	r.Server.ReportRepaired(p.origin(), kind.GroupKind().String())
	r.Log.Info("package loaded", "package", p.Name, "kind", kind.GroupKind().String(), "version", kind.Version, "digest", next.Digest())
	if s.follows {
		return nil // the process that decides has recorded it
	}
	r.Recorder.Record(p.object, rollout.Event{Reason: string(ReasonLoaded), Message: fmt.Sprintf("serves %s by %s", kind.GroupKind(), next.Digest())})
	return nil
}

// fallBack keeps serving what was accepted last, and has the resources say why.
func (r *Reconciler) fallBack(ctx context.Context, p Package, s *state, out *result) {
	faultText := out.problem.location(p.Name)
	if s.served == nil {
		r.restore(ctx, p, s, faultText, out)
		faultText = out.problem.location(p.Name)
	} else if err := r.keepServing(ctx, p, s, faultText); err != nil {
		out.problem.err = errors.Join(out.problem.err, err)
		return
	}
	if s.served == nil && !out.pending && faultText != "" && faultText != s.broken {
		if err := r.actAsDefined(ctx, p); err != nil {
			out.problem.err = errors.Join(out.problem.err, err)
			return
		}
		r.Server.ReportBroken(p.origin(), p.Name, faultText)
		s.broken = faultText
	}
}

// keepServing keeps serving a version, with its own definition, and has the resources say what is wrong with the
// present content.
func (r *Reconciler) keepServing(ctx context.Context, p Package, s *state, faultText string) error {
	if err := r.define(ctx, p, s); err != nil {
		return err
	}
	if s.outdated == faultText {
		return nil
	}
	if err := r.Server.ReportOutdated(ctx, s.served, faultText); err != nil {
		return err
	}
	s.outdated = faultText
	return nil
}
