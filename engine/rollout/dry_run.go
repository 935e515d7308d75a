package rollout

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/ownership"
)

// changedTogether reports whether several objects are written, and one of them because
// its rendering has changed. Then either all are written or none: a Service whose
// selector is changed for pods that are refused has no endpoints.
func changedTogether(steps []step) bool {
	writes := 0
	changed := false
	for _, s := range steps {
		if s.writes() {
			writes++
		}
		changed = changed || s.action.Verb == ownership.Update
	}
	return changed && writes > 1
}

// probe asks the API server whether it would accept the objects of a component, before
// the first of them is written, if they are changed together. The first need not be asked
// about: when it is refused, nothing else was written.
func (r *run) probe(ctx context.Context, steps []step) application {
	var out application
	if !changedTogether(steps) {
		return out
	}
	steps = slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !s.writes() })
	dry := r.Cluster.DryRun()
	for i, s := range steps {
		if said, ok := r.knownRejection(s); ok {
			out = out.refused(said)
			continue
		}
		if i == 0 || s.onlyMarks() {
			continue
		}
		_, err := s.send(ctx, dry)
		if r.wouldBeRefused(ctx, s, err) {
			out = out.refused(r.writeFailure(ctx, s, err))
		}
	}
	return out
}

// wouldBeRefused reports whether a dry run tells that the write itself would be refused.
// A dry run can fail for reasons of its own: a webhook that supports none, a namespace
// that the same component creates.
func (r *run) wouldBeRefused(ctx context.Context, s step, err error) bool {
	switch {
	case apierrors.IsBadRequest(err):
		return false
	case apierrors.IsInvalid(err) && s.live != nil && s.want.Policy.Apply == "recreateOnImmutable":
		return r.Cluster.Probe(ctx, s.want.Manifest) != nil
	}
	return isRejection(err) || apierrors.IsForbidden(err)
}
