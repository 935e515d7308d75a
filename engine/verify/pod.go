package verify

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pod judges without kstatus. kstatus fails a Pod that has been unschedulable for some time,
// by the clock, and a Pod in CrashLoopBackOff between two restarts. But a node may be added,
// and a restart may succeed, so neither state is final, and each change of the phase would be
// an event.
func pod(live *unstructured.Unstructured) Judgement {
	switch stringAt(live, "status", "phase") {
	case "":
		return progressing("the Pod has no phase yet")
	case "Succeeded":
		return ready()
	case "Failed":
		return failed(join("the Pod has failed", failureReason(live)))
	case "Running":
		if conditionIsTrue(live, "Ready") {
			return ready()
		}
		return progressing(join("the Pod is running and not ready", notReadyReason(live)))
	default:
		return progressing(join("the Pod is pending", notReadyReason(live)))
	}
}

// failureReason returns why a Pod has failed. It leaves out the termination message of a
// container, which may contain anything, also a secret.
func failureReason(live *unstructured.Unstructured) string {
	if text := join(stringAt(live, "status", "reason"), stringAt(live, "status", "message")); text != "" {
		return text
	}
	for _, c := range containers(live) {
		if code, _ := intAt(c, "state", "terminated", "exitCode"); code != 0 {
			return fmt.Sprintf("container %s ended with exit code %d", stringAt(c, "name"), code)
		}
	}
	return ""
}

// PodNotReadyReason returns why a Pod is not ready, or "" if it is ready.
func PodNotReadyReason(pod *unstructured.Unstructured) string {
	if j := Object(pod, "ready"); j.Health != Ready {
		return j.Message
	}
	return ""
}

// PodsOfWorkload is how many Pods of a workload are looked at: of many, one that is not ready is enough.
const PodsOfWorkload = 50

// NewestNotReadyPod returns the newest Pod that is not ready, or nil: during an update, it is one of the new
// ones. Of Pods of the same age, it is the first by name.
func NewestNotReadyPod(pods []*unstructured.Unstructured) *unstructured.Unstructured {
	var out *unstructured.Unstructured
	for _, pod := range pods {
		if PodNotReadyReason(pod) != "" && (out == nil || before(pod, out)) {
			out = pod
		}
	}
	return out
}

// before reports whether a Pod is newer than another one, or of the same age and first by name.
func before(pod, other *unstructured.Unstructured) bool {
	at, otherAt := pod.GetCreationTimestamp().Time, other.GetCreationTimestamp().Time
	return at.After(otherAt) || at.Equal(otherAt) && pod.GetName() < other.GetName()
}

// MountedClaims returns the names of the PersistentVolumeClaims that a Pod mounts.
func MountedClaims(pod *unstructured.Unstructured) []string {
	var out []string
	for _, volume := range mapsAt(pod, "spec", "volumes") {
		if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// notReadyReason returns why a Pod is not ready, in words that do not change with each retry.
func notReadyReason(live *unstructured.Unstructured) string {
	if c, ok := findCondition(live, "PodScheduled"); ok && c.status == "False" {
		return join("no node was found for it", c.reason)
	}
	for _, c := range containers(live) {
		if text := containerProblem(live, c); text != "" {
			return text
		}
	}
	return ""
}

// containers returns the statuses of a Pod's containers, in the order in which they start.
func containers(live *unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, m := range mapsAt(live, "status", list) {
			out = append(out, &unstructured.Unstructured{Object: m})
		}
	}
	return out
}
