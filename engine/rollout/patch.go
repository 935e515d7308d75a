package rollout

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// patch applies the patches to what was just rendered. It changes objects of the resource's
// namespace only: a user who can write patches there must not get further by them. It errors when
// the cluster does not tell where an object is: the patch would reach too far, or what it
// has changed before would be undone.
func (ev *evaluated) patch(ctx context.Context) error {
	if len(ev.in.Patches) == 0 {
		return nil
	}
	ev.retryPatches = 0
	var failure error
	changed, reports := patch.Apply(ev.everything(), ev.in.Patches, func(o program.Object) (bool, error) {
		scope, err := ev.Cluster.Scope(ctx, o.Identity.GroupVersionKind)
		switch {
		case cluster.IsKindNotServed(err):
			ev.retryPatches = retryAfter
		case err != nil:
			failure = err
		}
		return err == nil && ownership.RefOf(o, ev.in.Owner.Namespace, scope).Namespace == ev.in.Owner.Namespace, err
	})
	if failure != nil {
		return failure
	}
	// The result of the evaluator may be shared, so it is not changed.
	components := len(ev.rollout.Components)
	hooks := slices.Clone(ev.rollout.Hooks)
	for i := range hooks {
		hooks[i].Component = changed[components+i]
	}
	ev.rollout.Components, ev.rollout.Hooks = changed[:components], hooks
	ev.patched = reports
	return nil
}

// noteRejected keeps what the API server said of an object that it does not accept.
func (pr *progress) noteRejected(f WriteFailure) {
	if f.Kind == Rejected || apierrors.IsForbidden(f.err) {
		pr.rejected[f.want.Component+"."+f.want.Object] = f.Message
	}
}

// patchReports returns what has become of the patches: an object counts as changed when it
// exists with exactly the patched content.
func (pr *progress) patchReports() []patch.Report {
	var out []patch.Report
	for _, report := range pr.patched {
		done := patch.Report{Patch: report.Patch, Unmatched: slices.Clone(report.Unmatched)}
		for _, p := range report.Applied {
			if miss := pr.unapplied(p); miss.Reason != "" {
				done.Unmatched = append(done.Unmatched, miss)
				continue
			}
			done.Applied = append(done.Applied, p)
		}
		out = append(out, done)
	}
	return out
}

// unapplied says why an object is not as a patch has made it; its Reason is empty
// when it is.
func (pr *progress) unapplied(p patch.ChangedObject) patch.UnmatchedChange {
	miss := patch.UnmatchedChange{Address: p.Address, Reason: patch.Pending, Message: p.Object + " is not written yet"}
	if why, gone := pr.excluded[p.Component]; gone {
		miss.Reason, miss.Message = patch.NoSuchObject, "component "+p.Component+" should not exist: "+why
		return miss
	}
	if said, ok := pr.rejected[p.Address]; ok {
		miss.Reason, miss.Message = patch.Rejected, said
		return miss
	}
	i := slices.IndexFunc(pr.desired[p.Component], func(d ownership.Desired) bool { return d.Object == p.Name })
	if i >= 0 && pr.holds(pr.desired[p.Component][i]) {
		return patch.UnmatchedChange{}
	}
	if i >= 0 && pr.desired[p.Component][i].Policy.Apply == "createOnly" {
		miss.Reason, miss.Message = patch.Conflict, p.Object+" exists, and its policy is createOnly"
		return miss
	}
	if o := pr.outcomes[p.Component]; o.Message != "" && o.State != status.Verified {
		miss.Message += ": " + o.Message
	}
	return miss
}

// holds reports whether an object exists with the desired content. What a successful hook has
// left behind may be gone.
func (pr *progress) holds(d ownership.Desired) bool {
	if pr.finished(d) {
		return true
	}
	live := pr.live[d.Component][d.Object]
	if live == nil {
		return !pr.graph.Has(d.Component) && pr.outcomes[d.Component].State == status.Verified
	}
	return live.GetAnnotations()[ownership.AppliedAnnotation] == d.Digest
}

// effective returns the names of the patches by which an object differs from what the
// package renders.
func effective(reports []patch.Report) []string {
	var out []string
	for _, r := range reports {
		if len(r.Applied) > 0 {
			out = append(out, r.Patch.Name)
		}
	}
	return out
}
