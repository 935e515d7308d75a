package rollout

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// changedTogether reports whether several objects are written, one of them because its
// rendering has changed. Then all are written or none: a Service whose selector was changed
// for pods that are refused has no endpoints. An object that is written alone does not hold up those that stay as they are.
func changedTogether(decisions []decision) bool {
	writes, changed := 0, false
	for _, s := range decisions {
		if s.writes() {
			writes++
		}
		changed = changed || s.action.Decision == ownership.Update
	}
	return changed && writes > 1
}

// dryRun asks the API server whether it would accept the writes that were decided, but for the
// first few, and returns what it would refuse.
func (ap applier) dryRun(ctx context.Context, decisions []decision, unasked int) application {
	var out application
	decisions = slices.DeleteFunc(slices.Clone(decisions), func(s decision) bool { return !s.writes() })
	dry := ap.Cluster.DryRun()
	for i, s := range decisions {
		if said, ok := ap.knownRejection(s); ok {
			out = out.withFailure(said)
			continue
		}
		if i < unasked || s.onlyMarks() {
			continue
		}
		if _, err := s.send(ctx, dry); ap.wouldBeRefused(ctx, s, err) {
			out = out.withFailure(ap.writeFailure(ctx, s, err))
		}
	}
	return out
}

// wouldBeRefused reports whether the error of a dry run means that the write itself would be
// refused. A dry run can also fail for reasons of its own: a webhook that supports none, a
// namespace that the same component creates.
func (ap applier) wouldBeRefused(ctx context.Context, s decision, err error) bool {
	switch {
	case apierrors.IsBadRequest(err):
		return false
	case cluster.RefusesChange(err) && s.live != nil && s.want.Policy.Apply == program.RecreateOnImmutable:
		return ap.Cluster.Probe(ctx, s.want.Manifest) != nil
	}
	return isRejection(err) || apierrors.IsForbidden(err)
}
