package packages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/source"
)

// A revision is a PackageRevision: a content of a Package that was accepted.
type revision struct {
	name   string
	uid    types.UID
	number int64
	digest string
	// provenance is with which signatures it was accepted, or "" if that was not noted.
	provenance string
	// snapshot is nil for all but the newest.
	snapshot *source.Snapshot
}

// A keeper keeps contents as PackageRevisions, so that there is something to go back to.
type keeper struct {
	trust
	cluster cluster.Cluster
	server  Server
	log     logr.Logger
	now     func() time.Time
	// followed says that there are others who need the content of a canary.
	followed bool
}

// keeper returns what keeps contents.
func (r *Reconciler) keeper() keeper {
	return keeper{r.trust(), r.Revisions, r.Server, r.Log, r.Now, r.Followed}
}

// lastGood returns the revision that was accepted last, or nil.
func (k keeper) lastGood(ctx context.Context, p Package, s *state) (*revision, error) {
	if err := k.readRevisions(ctx, p, s); err != nil {
		return nil, err
	}
	if len(s.revisions) == 0 {
		return nil, nil
	}
	return &s.revisions[0], nil
}

// readRevisions reads the revisions of a Package, once: the metadata of all of them, which has their numbers
// and digests, and the files of the newest.
func (k keeper) readRevisions(ctx context.Context, p Package, s *state) error {
	if s.revisionsRead {
		return nil
	}
	found, err := k.cluster.ListLive(ctx, cluster.Selection{Kind: RevisionKind, Labels: map[string]string{crd.PackageLabel: p.Name}, OnlyMetadata: true})
	if err != nil {
		return fmt.Errorf("package %s: %w", p.Name, err)
	}
	var all []revision
	for _, u := range found {
		v, err := numbered(p, u)
		if errors.Is(err, errUnnumbered) {
			v, err = k.readRevision(ctx, p, u.GetName())
		}
		if isOutage(err) {
			return fmt.Errorf("package %s: %w", p.Name, err)
		}
		if err != nil {
			k.notUsed(p, u.GetName(), err)
			continue
		}
		all = append(all, v)
	}
	sortRevisions(all)
	for len(all) > 0 && all[0].snapshot == nil {
		v, err := k.readRevision(ctx, p, all[0].name)
		if isOutage(err) {
			return fmt.Errorf("package %s: %w", p.Name, err)
		}
		if err == nil {
			all[0] = v // what it contains counts, not what its annotations say
			sortRevisions(all)
			continue
		}
		k.notUsed(p, all[0].name, err)
		all = all[1:]
	}
	s.revisions, s.revisionsRead = all, true
	return nil
}

func (k keeper) notUsed(p Package, name string, err error) {
	k.log.Info("a revision is not used", "package", p.Name, "revision", name, "why", err.Error())
}

// An unusableRevisionError says why a PackageRevision is none of a Package.
type unusableRevisionError struct{ why string }

func (e *unusableRevisionError) Error() string { return e.why }

// isOutage reports whether a revision could not be read.
func isOutage(err error) bool {
	_, unusable := errors.AsType[*unusableRevisionError](err)
	return err != nil && !unusable
}

// readRevision reads a revision with its files.
func (k keeper) readRevision(ctx context.Context, p Package, name string) (revision, error) {
	u, err := k.cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: RevisionKind, Name: name})
	if err != nil {
		return revision{}, err
	}
	if u == nil {
		return revision{}, &unusableRevisionError{"it is gone"}
	}
	v, err := parseRevision(p, u)
	if err != nil {
		return revision{}, &unusableRevisionError{err.Error()}
	}
	return v, nil
}

// The annotations of a PackageRevision with its number and its digest, so that they are known without its
// files.
const (
	numberAnnotation = "operetta.dev/revision"
	digestAnnotation = "operetta.dev/digest"
)

// errUnnumbered says that a revision has no such annotations: an older operator has written it.
var errUnnumbered = errors.New("it has no number in its annotations")

// numbered reads the metadata of a revision. It errors if the revision belongs to another Package.
func numbered(p Package, u *unstructured.Unstructured) (revision, error) {
	if err := belongs(p, u); err != nil {
		return revision{}, &unusableRevisionError{err.Error()}
	}
	number, err := strconv.ParseInt(u.GetAnnotations()[numberAnnotation], 10, 64)
	digest := u.GetAnnotations()[digestAnnotation]
	if err != nil || digest == "" {
		return revision{}, errUnnumbered
	}
	return revision{name: u.GetName(), uid: u.GetUID(), number: number, digest: digest, provenance: u.GetAnnotations()[provenanceAnnotation]}, nil
}

// belongs errors if a revision belongs to another Package, even of the same name, or is about to be deleted.
func belongs(p Package, u *unstructured.Unstructured) error {
	if u.GetDeletionTimestamp() != nil {
		return errors.New("it is being deleted")
	}
	if owners := u.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != p.object.GetUID() {
		return errors.New("it belongs to another Package")
	}
	return nil
}

// sortRevisions sorts revisions, the newest first, and forgets the files of the others.
func sortRevisions(all []revision) {
	slices.SortFunc(all, func(a, b revision) int {
		return cmp.Or(cmp.Compare(b.number, a.number), strings.Compare(a.digest, b.digest))
	})
	for i := range all {
		if i > 0 {
			all[i].snapshot = nil
		}
	}
}

// parseRevision reads a revision of a Package. It errors if the revision belongs to another Package, even
// of the same name, or its files do not match its digest.
func parseRevision(p Package, u *unstructured.Unstructured) (revision, error) {
	if err := belongs(p, u); err != nil {
		return revision{}, err
	}
	number, _, _ := unstructured.NestedInt64(u.Object, "spec", "revision")
	digest, _, _ := unstructured.NestedString(u.Object, "spec", "digest")
	files, _, err := unstructured.NestedStringMap(u.Object, "spec", "files")
	if err != nil {
		return revision{}, err
	}
	dir, _, _ := unstructured.NestedString(u.Object, "spec", "path")
	if dir == "" {
		dir = "."
	}
	snapshot, err := source.Loader{}.Files(p.Name, p.origin(), dir, files)
	if err != nil {
		return revision{}, err
	}
	if snapshot.Digest() != digest {
		return revision{}, fmt.Errorf("its files have the digest %s, not %s", snapshot.Digest(), digest)
	}
	return revision{name: u.GetName(), uid: u.GetUID(), number: number, digest: digest, provenance: u.GetAnnotations()[provenanceAnnotation], snapshot: snapshot}, nil
}

// maxRevision is how long the JSON of a revision may be: an API server stores no object above 1.5 MiB, and adds to it who has written it.
const maxRevision = 3<<19 - 16<<10

// A revisionSizeError says that a content is too large for a revision.
type revisionSizeError struct{ size int }

// Error says how much it has, and how much it may have.
func (e *revisionSizeError) Error() string {
	return fmt.Sprintf("the files take %d bytes in a PackageRevision, which may have %d; split the package", e.size, maxRevision)
}

// mayKeep errors if a content could not be kept: its definition must not be installed then, as resources would lose the fields that
// it does not have while the version before goes on.
func (k keeper) mayKeep(ctx context.Context, p Package, s *state, snapshot *source.Snapshot) error {
	want, _, err := k.next(ctx, p, s, snapshot)
	if err != nil || want == nil {
		return err
	}
	text, err := json.Marshal(want.Object)
	if err != nil {
		return fmt.Errorf("package %s: keeping the content: %w", p.Name, err)
	}
	if len(text) > maxRevision {
		return &revisionSizeError{len(text)}
	}
	_, err = k.apply(ctx, k.cluster.DryRun(), p, s, want)
	return err
}

// next returns the revision that a content would be, with its number, or nil if it is the newest one.
func (k keeper) next(ctx context.Context, p Package, s *state, snapshot *source.Snapshot) (*unstructured.Unstructured, int64, error) {
	if err := k.readRevisions(ctx, p, s); err != nil {
		return nil, 0, err
	}
	from := s.content.provenance
	number, present := int64(1), types.UID("")
	if len(s.revisions) > 0 {
		newest := s.revisions[0]
		number = newest.number + 1
		if newest.digest == snapshot.Digest() {
			if newest.provenance == from {
				return nil, 0, nil
			}
			number, present = newest.number, newest.uid // it is the same one, and was verified again
		}
	}
	want := newRevision(p, snapshot, number, from)
	want.SetUID(present)
	return want, number, nil
}

// apply writes a revision to a cluster, or to the dry run of one.
func (k keeper) apply(ctx context.Context, to cluster.Cluster, p Package, s *state, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u, err := to.Apply(ctx, want)
	if err != nil {
		s.revisionsRead = false // somebody else may have written or deleted it
		return nil, fmt.Errorf("package %s: keeping the content: %w", p.Name, err)
	}
	return u, nil
}

// keep makes a content the revision that was accepted last.
func (k keeper) keep(ctx context.Context, p Package, s *state, snapshot *source.Snapshot) error {
	want, number, err := k.next(ctx, p, s, snapshot)
	if err != nil || want == nil {
		return err
	}
	u, err := k.apply(ctx, k.cluster, p, s, want)
	if err != nil {
		return err
	}
	from := s.content.provenance
	s.revisions = slices.DeleteFunc(s.revisions, func(v revision) bool { return v.number == number })
	s.revisions = append(s.revisions, revision{name: u.GetName(), uid: u.GetUID(), number: number, digest: snapshot.Digest(), provenance: from, snapshot: snapshot})
	sortRevisions(s.revisions)
	return nil
}

// newRevision returns the PackageRevision of a content.
func newRevision(p Package, snapshot *source.Snapshot, number int64, from string) *unstructured.Unstructured {
	files := map[string]any{}
	for name, text := range snapshot.Texts() {
		files[name] = text
	}
	digest := snapshot.Digest()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"package": p.Name, "revision": number, "digest": digest, "files": files,
	}}}
	if dir := snapshot.Dir(); dir != "." {
		u.Object["spec"].(map[string]any)["path"] = dir //nolint:forcetypeassert // it was made above
	}
	u.SetGroupVersionKind(RevisionKind)
	u.SetName(revisionName(p, number, digest))
	u.SetLabels(map[string]string{crd.PackageLabel: p.Name})
	annotations := map[string]string{numberAnnotation: strconv.FormatInt(number, 10), digestAnnotation: digest}
	if from != "" {
		annotations[provenanceAnnotation] = from
	}
	u.SetAnnotations(annotations)
	u.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{ //nolint:forcetypeassert // SetName has made it
		"apiVersion": Kind.GroupVersion().String(), "kind": Kind.Kind, "name": p.Name, "uid": string(p.object.GetUID()), "controller": true,
	}}
	return u
}

// revisionName returns the name of the PackageRevision of a content. No name is used twice: a revision of the
// same content, or of an earlier Package of the same name, may be about to be deleted.
func revisionName(p Package, number int64, digest string) string {
	const bytes = 6 // enough to tell the revisions of one Package apart
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", p.object.GetUID(), number, digest))
	return p.Name + "-" + hex.EncodeToString(sum[:bytes])
}

// prune deletes the revisions beyond the limit of a Package, the oldest first. One that a resource is pinned to stays, as long as that
// is allowed.
func (k keeper) prune(ctx context.Context, p Package, s *state) {
	limit := p.revisionLimit()
	if len(s.revisions) <= limit {
		return
	}
	var keep map[string]demand
	if p.RevisionPins == allowPins {
		all, err := k.server.Resources(ctx, s.served.GroupVersionKind())
		if err != nil {
			return // it is tried with the next one
		}
		keep = demands(all)
	}
	left := s.revisions[:limit:limit]
	for _, old := range s.revisions[limit:] {
		if keep[old.digest].resources > 0 {
			left = append(left, old)
			continue
		}
		if err := k.cluster.Delete(ctx, cluster.Ref{GroupVersionKind: RevisionKind, Name: old.name}, old.uid); err != nil {
			k.log.Info("an old revision is not deleted, it is tried again with the next one", "package", p.Name, "revision", old.name, "error", err.Error())
			left = append(left, old)
		}
	}
	s.revisions = left
}
