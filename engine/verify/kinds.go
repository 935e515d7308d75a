package verify

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are those of Kubernetes' own that kstatus does not judge as their users do.
// A rule is asked about objects that are not being deleted and whose status, if it
// names a generation, names the present one.
var kinds = map[schema.GroupKind]func(*unstructured.Unstructured) Judgement{
	{Group: "apps", Kind: "Deployment"}:                               deployment,
	{Group: "apps", Kind: "StatefulSet"}:                              statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:                                daemonSet,
	{Group: "apps", Kind: "ReplicaSet"}:                               replicaSet,
	{Kind: "ReplicationController"}:                                   replicationController,
	{Kind: "Pod"}:                                                     pod,
	{Group: "batch", Kind: "Job"}:                                     job,
	{Kind: "Service"}:                                                 service,
	{Kind: "PersistentVolumeClaim"}:                                   claim,
	{Kind: "PersistentVolume"}:                                        volume,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    counted,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             apiService,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: definition,
}

func deployment(live *unstructured.Unstructured) Judgement {
	if paused, _, _ := unstructured.NestedBool(live.Object, "spec", "paused"); paused {
		// While it is paused its condition Progressing says nothing else, so that kstatus
		// would wait for that even when nothing is missing. Without a deadline it does not.
		live = with(live, nil, "spec", "progressDeadlineSeconds")
	}
	return first(kstatus(live), counted(live))
}

func statefulSet(live *unstructured.Unstructured) Judgement {
	wanted := replicas(live)
	seen := live
	if onDelete(live) {
		// kstatus calls these current without a look. A partition that leaves out every
		// pod asks for all but the template, which is what the strategy means.
		seen = with(live, map[string]any{"rollingUpdate": map[string]any{"partition": wanted}}, "spec", "updateStrategy")
	}
	return first(kstatus(seen), counted(live), available(live, wanted))
}

// available asks for what minReadySeconds is about.
func available(live *unstructured.Unstructured, wanted int64) Judgement {
	if n, _ := number(live, "status", "availableReplicas"); n < wanted {
		return progressing(fmt.Sprintf("Available: %d/%d", n, wanted))
	}
	return ready()
}

func daemonSet(live *unstructured.Unstructured) Judgement {
	if desired, ok := number(live, "status", "desiredNumberScheduled"); ok && onDelete(live) {
		// The template may be an older one; kstatus would wait for ever.
		live = with(live, desired, "status", "updatedNumberScheduled")
	}
	return kstatus(live)
}

func replicaSet(live *unstructured.Unstructured) Judgement {
	return first(kstatus(live), counted(live))
}

// replicationController judges by the rule of its successor, which has the same fields.
func replicationController(live *unstructured.Unstructured) Judgement {
	return replicaSet(with(with(live, "apps/v1", "apiVersion"), "ReplicaSet", "kind"))
}

func onDelete(live *unstructured.Unstructured) bool {
	return word(live, "spec", "updateStrategy", "type") == "OnDelete"
}

// replicas is how many are asked for.
func replicas(live *unstructured.Unstructured) int64 {
	if n, ok := number(live, "spec", "replicas"); ok {
		return n
	}
	return 1
}

func job(live *unstructured.Unstructured) Judgement {
	suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend")
	switch {
	case holds(live, "Complete"):
		return ready()
	case holds(live, "Failed"):
		c, _ := find(live, "Failed")
		return failed(joined("the Job has failed", c.text()))
	case suspended:
		return progressing("the Job is suspended")
	case word(live, "status", "startTime") == "":
		return progressing("the Job has not started")
	default:
		return progressing("the Job is running")
	}
}

func service(live *unstructured.Unstructured) Judgement {
	if word(live, "spec", "type") != "LoadBalancer" || len(entries(live, "status", "loadBalancer", "ingress")) > 0 {
		return ready()
	}
	if own, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "externalIPs"); len(own) > 0 {
		return ready()
	}
	return progressing("no load balancer has given it an address yet")
}

func claim(live *unstructured.Unstructured) Judgement {
	switch word(live, "status", "phase") {
	case "Bound":
		return ready()
	case "Lost":
		return failed("the volume that it was bound to is gone")
	default:
		return progressing("it is not bound to a volume; a storage class with WaitForFirstConsumer does that when a pod uses it")
	}
}

func volume(live *unstructured.Unstructured) Judgement {
	switch word(live, "status", "phase") {
	case "Available", "Bound", "Released":
		return ready()
	case "Failed":
		return failed(joined("the volume has failed", word(live, "status", "reason"), word(live, "status", "message")))
	default:
		return progressing("the volume is not available yet")
	}
}

func apiService(live *unstructured.Unstructured) Judgement {
	c, _ := find(live, "Available")
	if c.status == "True" {
		return ready()
	}
	return progressing(cmp.Or(c.text(), "it is not known yet whether its server can be reached"))
}

func definition(live *unstructured.Unstructured) Judgement {
	return first(kstatus(live), current(live, "Established"))
}

// with returns an object with another value at a path, or without one if it is nil.
// The object itself stays as it is: it is the cache's.
func with(live *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: changed(live.Object, value, path)}
}

func changed(m map[string]any, value any, path []string) map[string]any {
	out := map[string]any{}
	maps.Copy(out, m)
	if len(path) > 1 {
		inner, _ := m[path[0]].(map[string]any)
		value = changed(inner, value, path[1:])
	}
	out[path[0]] = value
	if value == nil {
		delete(out, path[0])
	}
	return out
}
