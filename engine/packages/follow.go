package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/status"
)

// Several processes may share the custom resources of a Package, and others may stand by. One of them reconciles Packages, as Reconcile
// does; the others Follow: they serve what the status says that this one serves, from the contents that it has kept. They decide
// nothing and write nothing, so that whatever is approved, planned, tried by a canary or refused is so for all resources alike. While
// nobody reconciles Packages, or who does cannot tell what to serve, those who follow go on as they are.
//
// A process that stands by follows to answer reviews. When it becomes the leader, Reconcile takes over what it has followed: see ownState.

// published is what the status of a Package says that is served.
type published struct {
	// digest is the version, or "" if nothing is served.
	digest string
	// canary is what is tried, or nil.
	canary *canary
	// faultText is what the resources are told is wrong with the present content, or "".
	faultText string
}

// publishedBy reads what the process that reconciles Packages has written. The selector of a canary is in the spec; one that this process
// has not read yet may be that of another content, so the last selection stays until then.
func publishedBy(p Package, s *state, now time.Time) published {
	is, _, _ := unstructured.NestedMap(p.object.Object, "status")
	digest, _ := is["digest"].(string)
	if digest == "" && isUndecided(is) && s.served != nil {
		digest = s.served.Digest()
	}
	out := published{digest: digest, faultText: faultTextOf(p.Name, is)}
	c := restoredCanary(p, now)
	if digest == "" || !c.inProgress() || c.from != digest {
		return out
	}
	c.restored = false // which resources are chosen is decided
	switch {
	case c.share != "":
	case p.Canary != nil && p.Canary.Selector != nil && isObserved(p, is):
		c.selector, _ = metav1.LabelSelectorAsSelector(p.Canary.Selector) // Parse has read it
	case s.canary.is(c.digest) && s.canary.selector != nil:
		c.selector, c.restored = s.canary.selector, s.canary.restored
	default:
		c.selector, c.restored = labels.Nothing(), true // what has the content keeps it
	}
	out.canary = c
	return out
}

// isObserved reports whether the process that reconciles Packages has read the present spec.
func isObserved(p Package, is map[string]any) bool {
	generation, _ := is["observedGeneration"].(int64)
	return generation == p.object.GetGeneration()
}

// reasonsNotReported are the reasons of which resources are told nothing: there is nothing wrong with the content.
var reasonsNotReported = []Reason{
	ReasonServed, ReasonFetching, ReasonRegistryUnavailable, ReasonDeleting, ReasonPaused, ReasonAwaitingApproval, ReasonPlanning, ReasonLimitExceeded, ReasonPlanFailed,
	ReasonCanaryProgressing, ReasonCanaryReady, ReasonCanaryRolledBack, ReasonCanaryIncompatible, ReasonRightsMissing,
}

// faultTextOf returns what the resources of a Package are told according to its status, as location does.
func faultTextOf(name string, is map[string]any) string {
	ready := status.Condition(is, status.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || slices.Contains(reasonsNotReported, Reason(ready.Reason)) {
		return ""
	}
	where := ready.Reason
	faults, _ := is["faults"].([]any)
	if len(faults) > 0 {
		first, _ := faults[0].(map[string]any)
		position, _ := first["position"].(string)
		path, _ := first["path"].(string)
		where = locationOf(position, path, len(faults), where)
	}
	return where + seeStatus(name)
}

// Follow takes a Package as far as the process is that reconciles it, and returns when to look again, 0 for never.
func (r *Reconciler) Follow(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	name, tried := key.Name, triedIn(&r.first, &r.Begun.first)
	if r.Holds != nil {
		tried = r.Begun.first.tried // it counts as loaded only once this process leads
	}
	p, wrong, err := r.find(ctx, name, tried)
	if err != nil || p.object == nil {
		return 0, err
	}
	account, unknown := accountOf(p.object, r.Namespace)
	if unknown != nil {
		defer tried(name)
		r.Log.Info("the spec of a Package cannot be read; the version that is served keeps running", "package", name, "error", errors.Join(unknown, wrong).Error())
		return 0, nil
	}
	s, err := r.stateOf(ctx, p, account, nil)
	if err != nil {
		return 0, err
	}
	s.followUnread(r.Log, &p, wrong)
	p.account, s.follows = s.account, true
	pending, err := r.followTo(ctx, p, s, publishedBy(p, s, r.Now()))
	if pending {
		return 0, nil // the end of the examination is an event
	}
	defer tried(name)
	if err == nil {
		err = r.pin(ctx, p, s)
	}
	if err != nil {
		return 0, fmt.Errorf("following package %s: %w", name, err)
	}
	switch {
	case s.servedCanary != nil:
		return canaryAgain, nil // a resource may become ready without an event
	case s.served != nil:
		return countAgain, nil // resources may be pinned
	}
	return 0, nil
}

// followUnread says once that the spec of a Package cannot be read, as it may be of a newer version. What is served is in the status, and
// the resources have a version that they know. Which ones a canary is for is not taken from half a spec.
func (s *state) followUnread(log logr.Logger, p *Package, wrong error) {
	if wrong == nil {
		s.unread = 0
		return
	}
	p.Canary = nil
	if generation := p.object.GetGeneration(); s.unread != generation {
		s.unread = generation
		log.Info("the spec of a Package cannot be read; its status says what is served", "package", p.Name, "error", wrong.Error())
	}
}

// followTo serves what was published. It reports whether an examination has to end first.
func (r *Reconciler) followTo(ctx context.Context, p Package, s *state, to published) (pending bool, err error) {
	if to.digest == "" {
		return false, r.followToNothing(ctx, p, s, to.faultText)
	}
	next, pending, err := r.load(ctx, p, s, to)
	if err != nil || pending {
		return pending, err
	}
	if err := r.followVersion(ctx, p, s, to, next); err != nil {
		return false, err
	}
	if s.outdated != to.faultText {
		if err := r.Server.ReportOutdated(ctx, s.served, to.faultText); err != nil {
			return false, err
		}
		s.outdated = to.faultText
	}
	return false, errors.Join(r.followCanary(ctx, p, s, to.canary, next.canary), next.unusable)
}

// followToNothing serves nothing, and has the resources say why.
func (r *Reconciler) followToNothing(ctx context.Context, p Package, s *state, faultText string) error {
	if err := r.withdraw(ctx, p.Name, s); err != nil {
		return err
	}
	r.claims.only(p.Name, schema.GroupKind{})                       // another Package may serve its kind
	if faultText == "" || faultText == s.broken || r.Holds != nil { // Reconcile says it once this process leads
		return nil
	}
	if err := r.actAsDefined(ctx, p); err != nil {
		return err
	}
	r.Server.ReportBroken(p.origin(), p.Name, faultText)
	s.broken = faultText
	return nil
}

// loaded are the versions of what was published, as far as they are not served already.
type loaded struct {
	served, canary *Candidate
	// unusable is why the content of the canary cannot be tried by this process, or nil. It may be of another version.
	unusable error
}

// unusableContentError says that a content that was kept does not pass the checks of this process.
type unusableContentError struct {
	digest string
	why    error
}

func (e *unusableContentError) Error() string {
	return fmt.Sprintf("%s cannot be used: %v", e.digest, e.why)
}
func (e *unusableContentError) Unwrap() error { return e.why }

// load examines the contents of what was published.
func (r *Reconciler) load(ctx context.Context, p Package, s *state, to published) (out loaded, pending bool, err error) {
	if to.canary != nil && (s.servedCanary == nil || s.servedCanary.candidate.Program.Digest() != to.canary.digest) {
		v, err := r.keeper().readTried(ctx, p, to.canary.digest)
		if err != nil {
			return out, false, err
		}
		s.content = content{snapshot: v.snapshot, provenance: v.provenance}
		out.canary, pending, err = r.loadKept(ctx, p, s, v)
		if _, unusable := errors.AsType[*unusableContentError](err); unusable {
			out.unusable, err = err, nil // what is served does not wait for it
		}
		if err != nil || pending {
			return out, pending, err
		}
	}
	if s.served != nil && s.served.Digest() == to.digest {
		return out, false, nil
	}
	v, err := r.keeper().readKept(ctx, p, s, to.digest)
	if err != nil {
		return out, false, err
	}
	out.served, pending, err = r.loadKept(ctx, p, s, v)
	return out, pending, err
}

// loadKept examines a content that the process which reconciles Packages has kept.
func (r *Reconciler) loadKept(ctx context.Context, p Package, s *state, v revision) (_ *Candidate, pending bool, _ error) {
	exam, err := r.examine(ctx, p, s, v.snapshot)
	switch {
	case err != nil:
		return nil, false, err
	case !exam.ended():
		return nil, true, nil
	case exam.err != nil && exam.foundFaults():
		return nil, false, &unusableContentError{v.digest, exam.err}
	case exam.err != nil:
		return nil, false, fmt.Errorf("%s is not checked: %w", v.digest, exam.err)
	}
	return &exam.candidate, false, nil
}

// readKept reads the revision with a content. What is known of the revisions is read again if none of them can be used: another one may
// have been kept since, in place of one that is gone, or it may have been verified again.
func (k keeper) readKept(ctx context.Context, p Package, s *state, digest string) (revision, error) {
	for {
		known := s.revisionsRead
		if err := k.readRevisions(ctx, p, s); err != nil {
			return revision{}, err
		}
		v, err := k.keptOf(ctx, p, s.revisions, digest)
		if err == nil {
			return v, nil
		}
		s.revisionsRead = false
		if !known || ctx.Err() != nil {
			return revision{}, err
		}
	}
}

// keptOf reads the first one of some revisions that has a content and is accepted.
func (k keeper) keptOf(ctx context.Context, p Package, all []revision, digest string) (revision, error) {
	why := fmt.Errorf("there is no PackageRevision of %s, which the status says is served", digest)
	for _, v := range all {
		if v.digest != digest {
			continue
		}
		if v.snapshot == nil {
			read, err := k.readRevision(ctx, p, v.name)
			if isOutage(err) {
				return revision{}, err
			}
			if err != nil || read.digest != digest {
				why = errors.Join(fmt.Errorf("PackageRevision %s of %s cannot be used", v.name, digest), err)
				continue
			}
			v = read
		}
		if err := k.accepts(p, v.provenance); err != nil {
			why = fmt.Errorf("%s is not used: %w", digest, err)
			continue
		}
		return v, nil
	}
	return revision{}, why
}

// followVersion serves the version that was published, unless it is served already.
func (r *Reconciler) followVersion(ctx context.Context, p Package, s *state, to published, next loaded) error {
	if next.served == nil {
		return nil
	}
	kind := next.served.Program.GroupVersionKind()
	if wrong := r.claim(ctx, p, s, kind.GroupKind()); wrong != nil {
		return errors.New(wrong.message)
	}
	r.claims.only(p.Name, kind.GroupKind())
	r.Accounts.ActAs(kind.GroupKind(), p.account)
	if s.served == nil && next.canary != nil {
		both, err := bothDefinitions(next.served.CRD, next.canary.CRD)
		if err != nil {
			return err
		}
		s.canary = to.canary
		if err := r.serveRestored(ctx, p, s, *next.served, &servedCanary{candidate: *next.canary, both: both, selection: to.canary.selection()}, to.faultText); err != nil {
			return err
		}
		r.Server.ReportRepaired(p.origin(), kind.GroupKind().String())
		r.Log.Info("following a package and its canary", "package", p.Name, "digest", to.digest, "canary", to.canary.digest)
		return nil
	}
	if err := r.install(ctx, p, s, next.served.CRD); err != nil {
		return err
	}
	if err := r.serve(ctx, p, s, next.served.Program); err != nil {
		return err
	}
	s.crd, s.defined, s.servedCanary = next.served.CRD, next.served.Program.Digest(), nil
	return nil
}

// followCanary has some resources reconciled with another version, or ends that.
func (r *Reconciler) followCanary(ctx context.Context, p Package, s *state, to *canary, next *Candidate) error {
	s.canary = to
	if to == nil {
		return r.withdrawCanary(ctx, s)
	}
	if next != nil && (s.servedCanary == nil || s.servedCanary.candidate.Program != next.Program) {
		both, err := bothDefinitions(s.crd, next.CRD)
		if err != nil {
			return err
		}
		s.servedCanary = &servedCanary{candidate: *next, both: both}
	}
	if s.servedCanary == nil || !to.is(s.servedCanary.candidate.Program.Digest()) {
		if err := r.withdrawCanary(ctx, s); err != nil {
			return err
		}
		return fmt.Errorf("the content of the canary %s is not loaded beside that version yet", to.digest)
	}
	all, err := r.Server.Resources(ctx, s.served.GroupVersionKind())
	if err != nil {
		return err
	}
	return r.serveCanary(ctx, p, s, all)
}

// triedLabel is the label of the PackageRevision with the content of a canary, with the name of its Package. It is none that was
// accepted, so it does not have the label of those.
const triedLabel = "operetta.dev/tried-by"

// keepTried keeps the content of a canary for those who follow, also if somebody deletes it.
func (k keeper) keepTried(ctx context.Context, p Package, s *state) error {
	digest, from := s.servedCanary.candidate.Program.Digest(), s.content.provenance
	is := tried{digest: digest, provenance: from, at: k.now()}
	if !k.followed || s.follows || is.same(s.tried) && is.at.Sub(s.tried.at) < triedAgain {
		return nil
	}
	found, err := k.triedOf(ctx, p)
	if err != nil {
		return err
	}
	name := revisionName(p, triedNumber, digest)
	kept := slices.ContainsFunc(found, func(u *unstructured.Unstructured) bool {
		return u.GetName() == name && u.GetAnnotations()[provenanceAnnotation] == from
	})
	if !kept {
		want := newRevision(p, s.servedCanary.candidate.Program.Snapshot(), triedNumber, from)
		want.SetLabels(map[string]string{triedLabel: p.Name})
		if _, err := k.cluster.Apply(ctx, want); err != nil {
			return fmt.Errorf("keeping the content of the canary: %w", err)
		}
	}
	s.tried = is
	return deleteRevisions(ctx, k.cluster, slices.DeleteFunc(found, func(u *unstructured.Unstructured) bool { return u.GetName() == name }))
}

// tried is the content of a canary that was kept for those who follow, and when it was looked at.
type tried struct {
	digest, provenance string
	at                 time.Time
}

func (t tried) same(as tried) bool { return t.digest == as.digest && t.provenance == as.provenance }

// endTried deletes what was kept of a canary that has ended: the status has told nobody to try it any more.
func (k keeper) endTried(ctx context.Context, p Package, s *state) error {
	if s.tried.digest == "" || s.canary.inProgress() {
		return nil
	}
	found, err := k.triedOf(ctx, p)
	if err == nil {
		err = deleteRevisions(ctx, k.cluster, found)
	}
	if err != nil {
		return fmt.Errorf("package %s: deleting the content of a canary that has ended: %w", p.Name, err)
	}
	s.tried = tried{}
	return nil
}

// triedNumber is the number of a content that was not accepted: its name is that of no revision, which have others of their digests.
const triedNumber = 1 << 40

// triedOf returns the contents of canaries that are kept, without their files.
func (k keeper) triedOf(ctx context.Context, p Package) ([]*unstructured.Unstructured, error) {
	found, err := k.cluster.ListLive(ctx, cluster.Selection{Kind: RevisionKind, Labels: map[string]string{triedLabel: p.Name}, OnlyMetadata: true})
	return slices.DeleteFunc(found, func(u *unstructured.Unstructured) bool { return belongs(p, u) != nil }), err
}

// deleteRevisions deletes some of what is kept.
func deleteRevisions(ctx context.Context, from cluster.Cluster, all []*unstructured.Unstructured) error {
	for _, u := range all {
		if err := from.Delete(ctx, cluster.Ref{GroupVersionKind: RevisionKind, Name: u.GetName()}, u.GetUID()); err != nil {
			return err
		}
	}
	return nil
}

// readTried reads the content of a canary.
func (k keeper) readTried(ctx context.Context, p Package, digest string) (revision, error) {
	v, err := k.readRevision(ctx, p, revisionName(p, triedNumber, digest))
	switch {
	case err != nil:
		return revision{}, fmt.Errorf("the content of the canary %s cannot be read: %w", digest, err)
	case v.digest != digest:
		return revision{}, fmt.Errorf("PackageRevision %s has the content %s, and not that of the canary, %s", v.name, v.digest, digest)
	}
	if err := k.accepts(p, v.provenance); err != nil {
		return revision{}, fmt.Errorf("%s is not used: %w", digest, err)
	}
	return v, nil
}

// seeStatus ends what resources are told.
func seeStatus(name string) string { return "; the status of Package " + name + " says why" }

// locationOf returns where the first of some faults is, or else something else.
func locationOf(position, path string, faults int, otherwise string) string {
	where := otherwise
	if at := strings.Trim(position+": "+path, ": "); at != "" {
		where = at
	}
	if more := faults - 1; more > 0 {
		where += fmt.Sprintf(" and %d more", more)
	}
	return where
}
