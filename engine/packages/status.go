package packages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// The condition types of a Package, besides status.ConditionReady and status.ConditionStalled.
const (
	ConditionLoaded   = "Loaded"
	ConditionCRDReady = "CRDReady"
)

// The bounds of a status.
const (
	// maxFaults is how many faults it lists.
	maxFaults = 20
	// maxFaultText bounds each text of a fault, in bytes.
	maxFaultText = 1024
	// maxEvent bounds the message of an event, in bytes: the API server refuses longer ones.
	maxEvent = 1024
	// maxDigests is how many versions it counts resources of.
	maxDigests = 20
)

// report writes the status of a Package if it has changed.
func (r *Reconciler) report(ctx context.Context, p Package, s *state, out *result) error {
	before, _, _ := unstructured.NestedMap(p.object.Object, "status")
	after := r.newStatus(ctx, p, s, out, before)
	if c := status.Condition(after, status.ConditionReady); r.Observer != nil && c != nil {
		r.Observer.Package(p.Name, string(c.Status), c.Reason)
	}
	if status.Equal(before, after) {
		return nil
	}
	u := p.identity()
	u.Object["status"] = after
	err := r.Cluster.ApplyStatus(ctx, u)
	if apierrors.IsConflict(err) {
		return nil // it was replaced, and its next reconcile is about the other one
	}
	if err != nil {
		return fmt.Errorf("package %s: writing the status: %w", p.Name, err)
	}
	r.announce(p, out.problem, before, after)
	return nil
}

// announce logs and records a problem when it begins.
func (r *Reconciler) announce(p Package, wrong *problem, before, after map[string]any) {
	was, is := status.Condition(before, status.ConditionReady), status.Condition(after, status.ConditionReady)
	if wrong == nil || wrong.reason == ReasonFetching || wrong.reason == ReasonPlanning || was != nil && is != nil && was.Reason == is.Reason && was.Message == is.Message {
		return
	}
	r.Log.Info("the content of a Package is not served", "package", p.Name, "reason", string(wrong.reason), "message", wrong.message, "served", servedText(after))
	r.Recorder.Record(p.object, rollout.Event{Reason: string(wrong.reason), Message: status.Shorten(wrong.message, maxEvent), Warning: wrong.needsPerson()})
}

// servedText says which version is served according to a status.
func servedText(status map[string]any) string {
	if digest, _ := status["digest"].(string); digest != "" {
		return digest
	}
	return "nothing"
}

// newStatus returns the status of a Package.
func (r *Reconciler) newStatus(ctx context.Context, p Package, s *state, out *result, before map[string]any) map[string]any {
	said := conditions(s, out)
	if c := undecided(p, s, out, before); r.Followed && c != nil {
		said = append(said, *c)
	}
	after := map[string]any{
		"observedGeneration": p.object.GetGeneration(),
		"conditions":         status.NewConditions(before, p.object.GetGeneration(), r.Now(), said...),
	}
	if digest := s.content.digest(); digest != "" {
		after["sourceDigest"] = digest
	}
	if a := s.content.artifact; a != nil {
		after["artifact"] = artifactStatus(a)
	}
	if len(s.revisions) > 0 {
		after["lastGoodDigest"] = s.revisions[0].digest
	}
	if out.problem != nil && len(out.problem.faults) > 0 {
		after["faults"] = faultList(out.problem.faults)
	}
	if canary := s.canaryStatus(); canary != nil {
		after["canary"] = canary
	}
	if plan := s.planStatus(out); plan != nil {
		after["plan"] = plan
	}
	if s.served == nil {
		// What it has served before is still there, and it has to be known when the Package is deleted.
		retain(after, before, "group", "kind", "versions", "resources", "revisions")
		return after
	}
	kind := s.served.GroupVersionKind()
	after["digest"], after["group"], after["kind"] = s.served.Digest(), kind.Group, kind.Kind
	versions := []any{kind.Version} // servedKind takes the first one
	for _, v := range s.served.Meta().Versions {
		if v.Name != kind.Version {
			versions = append(versions, v.Name)
		}
	}
	after["versions"] = versions
	if resources, err := r.Server.Resources(ctx, kind); err == nil {
		after["resources"], after["revisions"] = int64(len(resources)), revisionCounts(resources)
	} else {
		retain(after, before, "resources", "revisions")
	}
	return after
}

// artifactStatus returns what is told of a module.
func artifactStatus(a *registry.Artifact) map[string]any {
	out := map[string]any{"digest": a.Digest, "module": a.Module}
	if a.Verified != nil && len(a.Verified.Keys) > 0 {
		out["signedBy"] = object.Texts(a.Verified.Keys)
	}
	return out
}

// retain copies fields of an earlier status that cannot be determined now.
func retain(after, before map[string]any, names ...string) {
	for _, name := range names {
		if v, ok := before[name]; ok {
			after[name] = v
		}
	}
}

// conditions returns the conditions of a Package.
func conditions(s *state, out *result) []metav1.Condition {
	ready := metav1.Condition{Type: status.ConditionReady, Status: metav1.ConditionTrue, Reason: string(ReasonServed)}
	loaded := metav1.Condition{Type: ConditionLoaded, Status: metav1.ConditionTrue, Reason: string(ReasonLoaded)}
	defined := metav1.Condition{Type: ConditionCRDReady, Status: metav1.ConditionTrue, Reason: string(ReasonInstalled)}
	if s.served != nil {
		kind := s.served.GroupVersionKind()
		ready.Message = "serves " + kind.GroupKind().String()
		loaded.Message = "the content of the source is accepted"
		defined.Message = fmt.Sprintf("the cluster serves %s %s", kind.GroupVersion(), kind.Kind)
		if s.gone {
			defined.Status, defined.Reason, defined.Message = metav1.ConditionFalse, string(ReasonCRDNotInstalled), fmt.Sprintf("the definition of %s is gone from the cluster", kind.GroupKind())
		}
	} else {
		defined.Status, defined.Reason, defined.Message = metav1.ConditionFalse, string(ReasonCRDNotInstalled), "nothing is served"
	}
	all := []metav1.Condition{ready, loaded, defined}
	wrong := out.problem
	if wrong == nil {
		return withDeletion(all, out)
	}
	fail(&all[0], wrong, servedInstead(s))
	switch wrong.stage {
	case reading, holding, loading:
		fail(&all[1], wrong, "")
	case defining:
		all[1].Message = "the content of the source is accepted"
		fail(&all[2], wrong, "")
	case serving:
		all[1].Message = "the content of the source is accepted"
	}
	if wrong.needsPerson() {
		all = append(all, metav1.Condition{Type: status.ConditionStalled, Status: metav1.ConditionTrue, Reason: string(wrong.reason), Message: wrong.message})
	}
	return withDeletion(all, out)
}

// withDeletion says in the condition Ready what a deleted Package waits for.
func withDeletion(all []metav1.Condition, out *result) []metav1.Condition {
	if out.waits != "" {
		all[0].Status, all[0].Reason, all[0].Message = metav1.ConditionFalse, string(ReasonDeleting), out.waits
	}
	return all
}

// fail makes a condition say what is wrong.
func fail(c *metav1.Condition, wrong *problem, instead string) {
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(wrong.reason), status.Shorten(wrong.message, status.MaxMessage-len(instead))+instead
}

// servedInstead says what is served although the content of the source is not.
func servedInstead(s *state) string {
	if s.served == nil {
		return "; nothing is served"
	}
	return "; " + s.served.Digest() + " is served"
}

// faultList returns faults as JSON values.
func faultList(faults fault.Faults) []any {
	var out []any
	for _, f := range faults[:min(len(faults), maxFaults)] {
		item := map[string]any{"message": status.Shorten(f.Message, maxFaultText)}
		for name, text := range map[string]string{"position": f.Position.String(), "path": f.Path, "hint": f.Hint} {
			if text != "" {
				item[name] = status.Shorten(text, maxFaultText)
			}
		}
		out = append(out, item)
	}
	return out
}

// revisionCounts returns how many resources run which version, the most first.
func revisionCounts(resources []Resource) []any {
	counts := map[string]int64{}
	for _, u := range resources {
		counts[u.Digest]++
	}
	digests := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	out := []any{}
	for _, digest := range digests[:min(len(digests), maxDigests)] {
		out = append(out, map[string]any{"digest": status.Shorten(digest, maxFaultText), "resources": counts[digest]})
	}
	return out
}

// servedKind returns the kind that a Package serves according to its status.
func servedKind(u *unstructured.Unstructured) schema.GroupVersionKind {
	group, _, _ := unstructured.NestedString(u.Object, "status", "group")
	kind, _, _ := unstructured.NestedString(u.Object, "status", "kind")
	versions, _, _ := unstructured.NestedStringSlice(u.Object, "status", "versions")
	out := schema.GroupVersionKind{Group: group, Kind: kind}
	if len(versions) > 0 {
		out.Version = versions[0]
	}
	return out
}
