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

// patch changes what was just rendered. Its reach is the resource's namespace: whoever
// may write patches there could otherwise reach beyond what they may do themselves. It
// errors when the cluster does not say whether an object is there: the patch would go too
// far, or what it has done before would be undone.
func (r *run) patch(ctx context.Context) error {
	if len(r.in.Patches) == 0 {
		return nil
	}
	all := slices.Clone(r.rollout.Components)
	for _, h := range r.rollout.Hooks {
		all = append(all, h.Component)
	}
	var failure error
	changed, reports := patch.Apply(all, r.in.Patches, func(o program.Object) (bool, error) {
		scope, err := r.Cluster.Scope(ctx, o.Identity.GroupVersionKind)
		switch {
		case cluster.IsKindNotServed(err):
			r.result.RequeueAfter = sooner(r.result.RequeueAfter, retryAfter)
		case err != nil:
			failure = err
		}
		return err == nil && ownership.RefOf(o, r.in.Owner.Namespace, scope).Namespace == r.in.Owner.Namespace, err
	})
	if failure != nil {
		return failure
	}
	// The evaluation may be shared, and stays as it is.
	components := len(r.rollout.Components)
	hooks := slices.Clone(r.rollout.Hooks)
	for i := range hooks {
		hooks[i].Component = changed[components+i]
	}
	r.rollout.Components, r.rollout.Hooks = changed[:components], hooks
	r.patched = reports
	return nil
}

// noteRefused remembers an object that the API server does not accept.
func (r *run) noteRefused(refused Refusal) {
	if refused.Kind != Rejected && !apierrors.IsForbidden(refused.err) {
		return
	}
	if r.rejected == nil {
		r.rejected = map[string]string{}
	}
	r.rejected[refused.want.Component+"."+refused.want.Object] = refused.Message
}

// patchReports returns what came of the patches by now: an object counts as changed
// when it is there with exactly the patched content.
func (r *run) patchReports() []patch.Report {
	var out []patch.Report
	for _, report := range r.patched {
		done := patch.Report{Patch: report.Patch, Unmatched: slices.Clone(report.Unmatched)}
		for _, p := range report.Applied {
			if miss := r.unapplied(p); miss.Reason != "" {
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
func (r *run) unapplied(p patch.ChangedObject) patch.UnmatchedChange {
	miss := patch.UnmatchedChange{Address: p.Address, Reason: patch.Pending, Message: p.Object + " is not written yet"}
	if why, gone := r.excluded[p.Component]; gone {
		miss.Reason, miss.Message = patch.NoSuchObject, "component "+p.Component+" should not exist: "+why
		return miss
	}
	if said, ok := r.rejected[p.Address]; ok {
		miss.Reason, miss.Message = patch.Rejected, said
		return miss
	}
	i := slices.IndexFunc(r.desired[p.Component], func(d ownership.Desired) bool { return d.Object == p.Name })
	if i >= 0 && r.holds(r.desired[p.Component][i]) {
		return patch.UnmatchedChange{}
	}
	if i >= 0 && r.desired[p.Component][i].Policy.Apply == "createOnly" {
		miss.Reason, miss.Message = patch.Conflict, p.Object+" exists, and its policy is createOnly"
		return miss
	}
	if o := r.outcomes[p.Component]; o.Message != "" && o.State != status.Verified {
		miss.Message += ": " + o.Message
	}
	return miss
}

// holds reports whether an object was written with a content. One that a finished
// hook has left behind may be gone.
func (r *run) holds(d ownership.Desired) bool {
	if r.over(d) {
		return true
	}
	live := r.live[d.Component][d.Object]
	if live == nil {
		return !r.graph.Has(d.Component) && r.outcomes[d.Component].State == status.Verified
	}
	return live.GetAnnotations()[ownership.AppliedMark] == d.Digest
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
