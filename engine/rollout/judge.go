package rollout

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
	"operetta.dev/engine/verify"
)

// judge returns the outcome of an applied component.
func (pr *progress) judge(ctx context.Context, c program.Component) status.Component {
	out := status.Component{Name: c.Name, State: status.Verified, Reason: status.ReasonVerified}
	for _, o := range c.Objects {
		j := pr.healthOf(ctx, c, o)
		switch j.Health {
		case verify.Ready:
			continue
		case verify.Failed, verify.Broken:
			return failed(c.Name, status.ReasonObjectFailed, pr.objectText(c.Name, o)+": "+j.Message)
		case verify.Progressing:
			if out.State == status.Verified {
				out.State, out.Reason, out.Message = status.Applied, status.ReasonNotReady, pr.objectText(c.Name, o)+": "+j.Message
			}
		}
	}
	j := verify.Predicates(c.Verify, c.Failed)
	switch j.Health {
	case verify.Failed:
		return failed(c.Name, status.ReasonObjectFailed, j.Message)
	case verify.Broken:
		return failed(c.Name, status.ReasonPredicateBroken, j.Message)
	case verify.Progressing:
		if i := slices.IndexFunc(c.Verify, func(p program.Predicate) bool { return p.Unset != "" }); i >= 0 {
			return unset(c.Name, "verify."+c.Verify[i].Name+": "+c.Verify[i].Explain(), c.Verify[i].Unset)
		}
		if out.State == status.Verified {
			out.State, out.Reason, out.Message = status.Applied, status.ReasonNotReady, j.Message
		} else {
			out.Message += "; " + j.Message
		}
	case verify.Ready:
	}
	return out
}

// notAppliedOutcome returns the outcome of a component whose gate is closed. It may be healthy and in sync
// all the same.
func (pr *progress) notAppliedOutcome(ctx context.Context, c program.Component, blocked status.Component) status.Component {
	waits := blocked.State == status.Waiting && blocked.Reason == status.ReasonDependency
	if waits && len(pr.desired[c.Name]) > 0 && pr.inSync(c.Name) {
		blocked.Healthy = pr.judge(ctx, c).State == status.Verified
	}
	return blocked
}

// health judges an object. The resource of another operator is ready when that operator has
// reported Ready for its present generation.
func (pr *progress) health(ctx context.Context, live *unstructured.Unstructured, policy string) verify.Judgement {
	j := verify.Object(live, policy)
	if j.Health == verify.Progressing && live != nil && pr.PodProblem != nil {
		if why := pr.PodProblem(ctx, live); why != "" {
			j.Message += "; " + why
		}
	}
	if j.Health != verify.Ready || policy != "ready" || pr.Subsystem == nil {
		return j
	}
	reports, err := pr.Subsystem(ctx, live.GroupVersionKind().GroupKind())
	switch {
	case err != nil:
		pr.failures = append(pr.failures, fmt.Errorf("%s: asking whether it is the resource of a package: %w", cluster.RefOf(live), err))
		return verify.Judgement{Health: verify.Progressing, Message: "it is not known whether its kind belongs to a package: " + err.Error()}
	case reports:
		return verify.ReadyCondition(live)
	}
	return j
}

// objectText names an object that may not exist.
func (pr *progress) objectText(component string, o program.Object) string {
	if u := pr.live[component][o.Name]; u != nil {
		return cluster.RefOf(u).String()
	}
	return "object " + o.Name
}

// healthOf judges an object, which may have finished and be gone.
func (pr *progress) healthOf(ctx context.Context, c program.Component, o program.Object) verify.Judgement {
	live := pr.live[c.Name][o.Name]
	g, gone := pr.gone[pr.refOf(ctx, o).Identity()]
	switch {
	case !gone || live != nil:
		return pr.health(ctx, live, o.Policy.Verify)
	case g.entry.Ended == ownership.Succeeded || o.Policy.Verify != "ready":
		return verify.Judgement{Health: verify.Ready}
	}
	return verify.Judgement{Health: verify.Failed, Message: fmt.Sprintf("the %s has failed, and has removed itself; "+
		"it runs again when its content changes, or when the annotation operetta.dev/reconcile-at is set to something else", g.ref.Kind)}
}
