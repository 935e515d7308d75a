package packages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/program"
)

// Pins say which versions of a package its resources may be pinned to by annotation. The zero value allows none.
type Pins struct {
	// Allowed says that the annotation counts.
	Allowed bool
	// Pending says that the rest is not known yet, as at a start.
	Pending bool
	// Kept has the digests of the versions that are kept; a pin to another one cannot be used. Programs are those of them that
	// are loaded, and Unusable says why others cannot be. The rest are being loaded.
	Kept     map[string]bool
	Programs map[string]*program.Program
	Unusable map[string]string
}

// pinsPending stands for Pins of which nothing is known yet.
const pinsPending = "pending"

// maxPinned is how many versions of a package are served because of pins: each takes the memory of a package.
const maxPinned = 5

// A pinned is a kept version that a resource is pinned to.
type pinned struct {
	exam *examination
	// definition is what the version reports if it is served, and judged says that this is known.
	definition *definition
	judged     bool
}

// allowPins tells the Server before it serves a kind whether pins count: no resource that is pinned may get another version meanwhile.
func (r *Reconciler) allowPins(ctx context.Context, p Package, s *state, kind schema.GroupKind) error {
	allowed := p.RevisionPins == allowPins
	if s.reportedPins = ""; allowed {
		s.reportedPins = pinsPending
	}
	return r.Versions.Pins(ctx, kind, Pins{Allowed: allowed, Pending: allowed})
}

// pin serves the kept versions that resources are pinned to.
func (r *Reconciler) pin(ctx context.Context, p Package, s *state) error {
	if s.served == nil {
		return nil
	}
	kind := s.served.GroupVersionKind()
	if p.RevisionPins != allowPins {
		if s.reportedPins == "" {
			return nil
		}
		s.keepPinned(nil)
		s.reportedPins = ""
		return r.Versions.Pins(ctx, kind.GroupKind(), Pins{})
	}
	if err := r.keeper().readRevisions(ctx, p, s); err != nil {
		return err
	}
	all, err := r.Server.Resources(ctx, kind)
	if err != nil {
		return err
	}
	out := Pins{Allowed: true, Kept: map[string]bool{}, Programs: map[string]*program.Program{}, Unusable: map[string]string{}}
	for _, v := range s.revisions {
		out.Kept[v.digest] = true
	}
	wanted := s.wantedRevisions(demands(all))
	places := wanted[:min(len(wanted), maxPinned)]
	for _, v := range wanted[len(places):] {
		out.Unusable[v.digest] = fmt.Sprintf("resources are pinned to %d other revisions, which come first", maxPinned)
	}
	s.keepPinned(places)
	beside := s.crd
	if s.servedCanary != nil {
		beside = s.servedCanary.both
	}
	for _, v := range places {
		if err := r.loadPinned(ctx, p, s, v, &out); err != nil {
			return err
		}
		beside = s.pinBeside(beside, v.digest, &out)
	}
	if err := r.define(ctx, p, s); err != nil {
		return err
	}
	if next := out.String(); next != s.reportedPins {
		if err := r.Versions.Pins(ctx, kind.GroupKind(), out); err != nil {
			return err
		}
		s.reportedPins = next
	}
	return nil
}

// keepPinned forgets all pinned versions but some.
func (s *state) keepPinned(some []revision) {
	for digest, v := range s.pinned {
		if !slices.ContainsFunc(some, func(kept revision) bool { return kept.digest == digest }) {
			v.exam.cancel()
			delete(s.pinned, digest)
		}
	}
}

// loadPinned notes how far a kept version is that a resource is pinned to.
func (r *Reconciler) loadPinned(ctx context.Context, p Package, s *state, v revision, out *Pins) error {
	if err := r.trust().accepts(p, v.provenance); err != nil {
		out.Unusable[v.digest] = "its signatures are not those that are demanded"
		return nil //nolint:nilerr // the resource says it
	}
	known := s.pinned[v.digest]
	if known == nil || known.exam.outdated(r.Now()) {
		kept, err := r.keeper().readRevision(ctx, p, v.name)
		if isOutage(err) {
			return err
		}
		if err != nil {
			out.Unusable[v.digest] = "its PackageRevision cannot be used"
			return nil //nolint:nilerr // the resource says it
		}
		var before *examination
		if known != nil {
			before = known.exam
		}
		known = &pinned{exam: r.examiner().begin(ctx, p.Name, kept.snapshot, accepted, before)}
		if s.pinned == nil {
			s.pinned = map[string]*pinned{}
		}
		s.pinned[v.digest] = known
	}
	switch exam := known.exam; {
	case !exam.ended() && exam.tries == 0:
		return nil // its end is an event
	case !exam.ended() || exam.err != nil && !exam.foundFaults():
		out.Unusable[v.digest] = "it could not be checked, which is tried again"
		return nil
	}
	c := known.exam.candidate
	switch {
	case known.exam.err != nil:
		out.Unusable[v.digest] = "it does not pass its checks any more"
	case c.Program.GroupVersionKind() != s.served.GroupVersionKind():
		out.Unusable[v.digest] = "it is of another kind or version"
	default:
		out.Programs[v.digest] = c.Program
	}
	return nil
}

// pinBeside returns the definition with which a pinned version can report besides all that is served so far. One that cannot is not served:
// the API server would refuse its status.
func (s *state) pinBeside(present *definition, digest string, out *Pins) *definition {
	known := s.pinned[digest]
	if known == nil {
		return present
	}
	known.definition, known.judged = nil, known.exam.ended()
	if out.Programs[digest] == nil {
		return present
	}
	both, err := reportingToo(present, known.exam.candidate.CRD)
	if err != nil {
		delete(out.Programs, digest)
		out.Unusable[digest] = "its definition contradicts the present one: " + err.Error()
		return present
	}
	known.definition = known.exam.candidate.CRD
	return both
}

// besidePins returns why a definition cannot be the present one because of the versions that resources are pinned to, or nil. It reports
// whether these are known: after a restart they are loaded first.
func (s *state) besidePins(next *definition) (known bool, err error) {
	if s.reportedPins == pinsPending {
		return false, nil
	}
	for _, digest := range slices.Sorted(maps.Keys(s.pinned)) {
		v := s.pinned[digest]
		if !v.judged && v.exam.tries == 0 {
			return false, nil
		}
		if v.definition == nil {
			continue // no resource is served by it
		}
		if next, err = reportingToo(next, v.definition); err != nil {
			return true, fmt.Errorf("%s, which a resource is pinned to: %w", digest, err)
		}
	}
	return true, nil
}

// String identifies what the pins say.
func (p Pins) String() string {
	return fmt.Sprint("kept ", strings.Join(slices.Sorted(maps.Keys(p.Kept)), " "), ", loaded ", strings.Join(slices.Sorted(maps.Keys(p.Programs)), " "), ", unusable ", p.Unusable)
}

// Why returns why a version cannot serve the resources that are pinned to it, or "" if it can, or is being loaded.
func (p Pins) Why(digest string) string {
	if why := p.Unusable[digest]; why != "" {
		return "the revision that operetta.dev/revision-pin names cannot be used: " + why
	}
	if !p.Pending && !p.Kept[digest] {
		return "operetta.dev/revision-pin names no revision that is kept; status.package.digest of a resource and spec.digest of a PackageRevision have such names"
	}
	return ""
}
