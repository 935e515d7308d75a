package packages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"operetta.dev/engine/registry"
	"operetta.dev/engine/signature"
)

// A provenance is where a content is from, and with which signatures it was accepted. A revision keeps it, so that
// what is served without a registry is not less trusted than what comes from one.
type provenance struct {
	// Object says that the files are those of an object of the cluster.
	Object bool `json:"object,omitempty"`
	// Artifacts are the module, unless it is an object, and those that it depends on.
	Artifacts []registry.Verified `json:"artifacts,omitempty"`
}

// text returns a provenance as a revision keeps it.
func (o provenance) text() string {
	out, err := json.Marshal(o)
	if err != nil {
		panic(err) // it has nothing but texts
	}
	return string(out)
}

// provenanceAnnotation is the annotation of a PackageRevision with its provenance. It is only there if signatures were demanded.
const provenanceAnnotation = "operetta.dev/verified"

// errUnverified says that nothing is known about the signatures of a content.
var errUnverified = errors.New("its signatures were not verified")

// trust says by which signatures contents are accepted.
type trust struct{ registries Registries }

// trust returns what says which contents are accepted.
func (r *Reconciler) trust() trust { return trust{r.Registries} }

// accepts errors if a content that was accepted earlier is none that would be accepted now. It asks no registry.
func (t trust) accepts(p Package, text string) error {
	if t.registries == nil || !t.registries.RecordsVerification(p.keys) {
		return nil
	}
	var o provenance
	if err := json.Unmarshal([]byte(text), &o); err != nil || !o.Object && len(o.Artifacts) == 0 {
		return errUnverified
	}
	own := p.keys
	if o.Object {
		if len(own) > 0 {
			return errUnverified // the module of the Package has to be signed, and this is none
		}
		if err := t.registries.CheckUnsigned(); err != nil {
			return err
		}
	}
	for _, v := range o.Artifacts {
		if err := t.registries.CheckVerified(v, own); err != nil {
			return err
		}
	}
	return nil
}

// objectProvenance returns the provenance of the files of an object, or "" if none is noted. It errors if such files
// are not accepted.
func (t trust) objectProvenance() (string, error) {
	if t.registries == nil || !t.registries.RecordsVerification(nil) {
		return "", nil
	}
	return provenance{Object: true}.text(), t.registries.CheckUnsigned()
}

// fetchedProvenance returns the provenance of what was fetched, or "" if none is noted.
func (t trust) fetchedProvenance(keys signature.Keys, a *registry.Artifact, modules *registry.Modules) string {
	if !t.registries.RecordsVerification(keys) {
		return ""
	}
	o := provenance{Object: a == nil}
	if a != nil && a.Verified != nil {
		o.Artifacts = append(o.Artifacts, *a.Verified)
	}
	o.Artifacts = append(o.Artifacts, modules.Verified()...)
	return o.text()
}

// noteProvenance keeps with which signatures the content that is served was accepted, if that has changed.
func (k keeper) noteProvenance(ctx context.Context, p Package, s *state) *problem {
	if len(s.revisions) == 0 || s.revisions[0].digest != s.content.digest() || s.revisions[0].provenance == s.content.provenance {
		return nil
	}
	if err := k.keep(ctx, p, s, s.content.snapshot); err != nil {
		return &problem{stage: serving, reason: ReasonNotKept, message: err.Error(), err: err}
	}
	return nil
}

// sayUnverified says that what is served would not be accepted now: it goes on, because nothing better is known, but a
// process that begins does not serve it.
func (t trust) sayUnverified(p Package, s *state, wrong *problem) {
	for _, v := range s.revisions {
		if s.served == nil || v.digest != s.served.Digest() {
			continue
		}
		if err := t.accepts(p, v.provenance); err != nil {
			wrong.addMessage(fmt.Sprintf("after a restart, %s is not served any more: %v", v.digest, err))
		}
		return
	}
}
