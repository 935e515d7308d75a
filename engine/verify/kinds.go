package verify

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// healthByKind has the built-in kinds that kstatus judges differently from what their users
// expect. A rule is only called for an object that is not being deleted and whose
// status.observedGeneration, if there is one, is current.
var healthByKind = map[schema.GroupKind]func(*unstructured.Unstructured) Judgement{
	{Group: "apps", Kind: "Deployment"}:                               deployment,
	{Group: "apps", Kind: "StatefulSet"}:                              statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:                                daemonSet,
	{Group: "apps", Kind: "ReplicaSet"}:                               replicaSet,
	{Kind: "ReplicationController"}:                                   replicationController,
	{Kind: "Pod"}:                                                     pod,
	{Group: "batch", Kind: "Job"}:                                     job,
	{Kind: "Service"}:                                                 service,
	{Kind: "PersistentVolumeClaim"}:                                   persistentVolumeClaim,
	{Kind: "PersistentVolume"}:                                        persistentVolume,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    statusReported,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             apiService,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: customResourceDefinition,
}

func deployment(live *unstructured.Unstructured) Judgement {
	if paused, _, _ := unstructured.NestedBool(live.Object, "spec", "paused"); paused {
		// While a Deployment is paused, its condition Progressing says only that, and kstatus
		// would wait forever. Without a deadline, kstatus ignores the condition.
		live = withField(live, nil, "spec", "progressDeadlineSeconds")
	}
	return firstNotReady(kstatus(live), statusReported(live))
}

func statefulSet(live *unstructured.Unstructured) Judgement {
	wanted := replicas(live)
	seen := live
	if onDelete(live) {
		// kstatus calls a StatefulSet with OnDelete current without any check. With a partition
		// that excludes every pod, it checks everything but the template, as OnDelete means.
		seen = withField(live, map[string]any{"rollingUpdate": map[string]any{"partition": wanted}}, "spec", "updateStrategy")
	}
	return firstNotReady(kstatus(seen), statusReported(live), available(live, wanted))
}

// available waits until enough replicas have been ready for minReadySeconds.
func available(live *unstructured.Unstructured, wanted int64) Judgement {
	if n, _ := intAt(live, "status", "availableReplicas"); n < wanted {
		return progressing(fmt.Sprintf("Available: %d/%d", n, wanted))
	}
	return ready()
}

func daemonSet(live *unstructured.Unstructured) Judgement {
	if desired, ok := intAt(live, "status", "desiredNumberScheduled"); ok && onDelete(live) {
		// The pods may have an older template; kstatus would wait forever for their update.
		live = withField(live, desired, "status", "updatedNumberScheduled")
	}
	return kstatus(live)
}

func replicaSet(live *unstructured.Unstructured) Judgement {
	return firstNotReady(kstatus(live), statusReported(live))
}

// replicationController judges by the rule of the ReplicaSet, which has the same fields.
func replicationController(live *unstructured.Unstructured) Judgement {
	return replicaSet(withField(withField(live, "apps/v1", "apiVersion"), "ReplicaSet", "kind"))
}

func onDelete(live *unstructured.Unstructured) bool {
	return stringAt(live, "spec", "updateStrategy", "type") == "OnDelete"
}

// replicas returns the desired number of replicas.
func replicas(live *unstructured.Unstructured) int64 {
	if n, ok := intAt(live, "spec", "replicas"); ok {
		return n
	}
	return 1
}

func job(live *unstructured.Unstructured) Judgement {
	suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend")
	switch {
	case conditionIsTrue(live, "Complete"):
		return ready()
	case conditionIsTrue(live, "Failed"):
		c, _ := findCondition(live, "Failed")
		return failed(join("the Job has failed", c.text()))
	case suspended:
		return progressing("the Job is suspended")
	case stringAt(live, "status", "startTime") == "":
		return progressing("the Job has not started")
	default:
		return progressing("the Job is running")
	}
}

func service(live *unstructured.Unstructured) Judgement {
	if stringAt(live, "spec", "type") != "LoadBalancer" || len(mapsAt(live, "status", "loadBalancer", "ingress")) > 0 {
		return ready()
	}
	if own, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "externalIPs"); len(own) > 0 {
		return ready()
	}
	return progressing("the load balancer has not assigned an address yet")
}

func persistentVolumeClaim(live *unstructured.Unstructured) Judgement {
	switch stringAt(live, "status", "phase") {
	case "Bound":
		return ready()
	case "Lost":
		return failed("the volume that it was bound to is gone")
	default:
		return progressing("it is not bound to a volume; a storage class with WaitForFirstConsumer does that when a pod uses it")
	}
}

func persistentVolume(live *unstructured.Unstructured) Judgement {
	switch stringAt(live, "status", "phase") {
	case "Available", "Bound", "Released":
		return ready()
	case "Failed":
		return failed(join("the volume has failed", stringAt(live, "status", "reason"), stringAt(live, "status", "message")))
	default:
		return progressing("the volume is not available yet")
	}
}

func apiService(live *unstructured.Unstructured) Judgement {
	c, _ := findCondition(live, "Available")
	if c.status == "True" {
		return ready()
	}
	return progressing(cmp.Or(c.text(), "it has not been checked yet whether its server can be reached"))
}

func customResourceDefinition(live *unstructured.Unstructured) Judgement {
	return firstNotReady(kstatus(live), conditionCurrent(live, "Established"))
}

// withField returns a copy of an object with another value at a path, or without that field
// if the value is nil. It does not modify the object, which belongs to the cache.
func withField(live *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: copyWithField(live.Object, value, path)}
}

func copyWithField(m map[string]any, value any, path []string) map[string]any {
	out := map[string]any{}
	maps.Copy(out, m)
	if len(path) > 1 {
		inner, _ := m[path[0]].(map[string]any)
		value = copyWithField(inner, value, path[1:])
	}
	out[path[0]] = value
	if value == nil {
		delete(out, path[0])
	}
	return out
}
