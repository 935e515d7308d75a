package dryrun

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/status"
)

// knownKinds is a cluster that serves the built-in kinds, those of the packages, and those whose
// definition or object was given. There is no server to ask about any other kind, so the error
// asks the author.
type knownKinds struct{ *memory.Cluster }

// giveDefinition is the remedy for a kind that is not known.
const giveDefinition = "without a cluster, give its CustomResourceDefinition with -f, or in the folder crds next to cue.mod, which says where its objects live"

// Scope implements cluster.Cluster.
func (k knownKinds) Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	scope, err := k.Cluster.Scope(ctx, kind)
	if !cluster.IsKindNotServed(err) {
		return scope, err
	}
	remedy := giveDefinition
	if removal, removed := cluster.APIRemovalOf(kind); removed {
		remedy = removal.String()
	}
	return "", &cluster.KindNotServedError{Kind: kind, Remedy: remedy}
}

// simulateOnce simulates the controllers of Kubernetes: it makes every object as healthy as it can be,
// and collects garbage.
func (w *World) simulateOnce() {
	w.Cluster.CollectGarbage()
	for _, u := range w.Cluster.Objects() {
		next := u.DeepCopy()
		if !w.atRest(u) && !w.excluded.Has(cluster.RefOf(u).Identity()) && w.healthy(next) {
			next.Object["status"] = w.keepStatus(u.Object["status"], next.Object["status"])
			_, _ = w.Cluster.Put("controller", next) // what it read it can write
		}
	}
}

// healthy sets the status of an object as its controller would in the end. It reports false if
// no controller is to be simulated for the object.
func (w *World) healthy(u *unstructured.Unstructured) bool {
	if u.GetDeletionTimestamp() != nil {
		return false
	}
	kind := u.GroupVersionKind().GroupKind()
	if w.Serves(kind) {
		return false // the operator of this dry run writes it
	}
	if kind == patch.Kind.GroupKind() {
		return false // the operator of its target writes it
	}
	if kind == definitionKind {
		w.define(u)
		u.Object["status"] = established()
		return true
	}
	if outcome, ok := outcomes[kind]; ok {
		outcome(u)
		return true
	}
	if scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		return false
	}
	ready := holding(status.ConditionReady)
	ready["lastTransitionTime"] = firstMoment // most definitions require it
	u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "conditions": []any{ready}}
	w.definitions.prune(u)
	_, has := u.Object["status"]
	return has
}

// established returns the status of a definition whose kind is served.
func established() map[string]any {
	return map[string]any{"conditions": []any{holding("Established"), holding("NamesAccepted")}}
}

// define serves the kind that an object defines, if it is a CustomResourceDefinition.
func (w *World) define(u *unstructured.Unstructured) {
	if kind, scope, ok := cluster.DefinedBy(u.Object); ok {
		w.Cluster.Serve(kind, scope)
		w.definitions.learn(u)
	}
}

// firstMoment is when a dry run begins by its clock.
const firstMoment = "1970-01-01T00:00:00Z"

// holding returns a condition with status True.
func holding(condition string) map[string]any {
	return map[string]any{"type": condition, "status": "True", "reason": condition, "message": ""}
}

// outcomes set the status that the controllers of built-in kinds write in the end.
var outcomes = map[schema.GroupKind]func(*unstructured.Unstructured){
	{Group: "apps", Kind: "Deployment"}:  deploymentOutcome,
	{Group: "apps", Kind: "StatefulSet"}: statefulSetOutcome,
	{Group: "apps", Kind: "ReplicaSet"}:  replicasOutcome,
	{Kind: "ReplicationController"}:      replicasOutcome,
	{Group: "apps", Kind: "DaemonSet"}: func(u *unstructured.Unstructured) {
		setStatus(u, map[string]any{
			"desiredNumberScheduled": int64(1), "currentNumberScheduled": int64(1), "updatedNumberScheduled": int64(1),
			"numberAvailable": int64(1), "numberReady": int64(1), "numberMisscheduled": int64(0),
		})
	},
	{Group: "batch", Kind: "Job"}: func(u *unstructured.Unstructured) {
		n, found, _ := unstructured.NestedInt64(u.Object, "spec", "completions")
		if !found {
			n = 1
		}
		u.Object["status"] = map[string]any{"succeeded": n, "conditions": []any{holding("Complete")}}
	},
	{Kind: "Pod"}: func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"phase": "Running", "podIP": address, "conditions": []any{holding("PodScheduled"), holding("Ready")}}
	},
	{Kind: "PersistentVolumeClaim"}: func(u *unstructured.Unstructured) {
		out := map[string]any{"phase": "Bound"}
		if size, found, _ := unstructured.NestedString(u.Object, "spec", "resources", "requests", "storage"); found {
			out["capacity"] = map[string]any{"storage": size}
		}
		u.Object["status"] = out
	},
	{Kind: "PersistentVolume"}: func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"phase": "Available"} },
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"conditions": []any{holding("Available")}}
	},
	{Kind: "Namespace"}: func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"phase": "Active"} },
	{Kind: "Service"}:   serviceOutcome,
	{Group: "networking.k8s.io", Kind: "Ingress"}: func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"loadBalancer": reachable()}
	},
	{Group: "policy", Kind: "PodDisruptionBudget"}: func(u *unstructured.Unstructured) {
		setStatus(u, map[string]any{"currentHealthy": int64(1), "desiredHealthy": int64(1), "disruptionsAllowed": int64(1), "expectedPods": int64(1)})
	},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: func(u *unstructured.Unstructured) {
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "minReplicas")
		setStatus(u, map[string]any{"currentReplicas": n, "desiredReplicas": n, "conditions": []any{holding("AbleToScale"), holding("ScalingActive")}})
	},
}

// address is the IP address of every pod, Service and load balancer; it is reserved for documentation.
const address = "192.0.2.1"

func reachable() map[string]any {
	return map[string]any{"ingress": []any{map[string]any{"ip": address}}}
}

// setStatus sets a status that has observed the current generation.
func setStatus(u *unstructured.Unstructured, fields map[string]any) {
	fields["observedGeneration"] = u.GetGeneration()
	u.Object["status"] = fields
}

// wanted returns the number of replicas in the spec, which is 1 by default.
func wanted(u *unstructured.Unstructured) int64 {
	if n, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		return n
	}
	return 1
}

func replicasOutcome(u *unstructured.Unstructured) {
	n := wanted(u)
	setStatus(u, map[string]any{"replicas": n, "fullyLabeledReplicas": n, "readyReplicas": n, "availableReplicas": n})
}

func deploymentOutcome(u *unstructured.Unstructured) {
	n := wanted(u)
	done := holding("Progressing")
	done["reason"] = "NewReplicaSetAvailable"
	setStatus(u, map[string]any{
		"replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n, "conditions": []any{holding("Available"), done},
	})
}

func statefulSetOutcome(u *unstructured.Unstructured) {
	n := wanted(u)
	setStatus(u, map[string]any{
		"replicas": n, "currentReplicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
		"currentRevision": "1", "updateRevision": "1",
	})
}

func serviceOutcome(u *unstructured.Unstructured) {
	if _, found, _ := unstructured.NestedString(u.Object, "spec", "clusterIP"); !found {
		_ = unstructured.SetNestedField(u.Object, address, "spec", "clusterIP") // spec is a map
	}
	out := map[string]any{}
	if kind, _, _ := unstructured.NestedString(u.Object, "spec", "type"); kind == "LoadBalancer" {
		out = reachable()
	}
	u.Object["status"] = map[string]any{"loadBalancer": out}
}
