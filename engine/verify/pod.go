package verify

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pod judges without kstatus, which reads the clock to fail a Pod that no node has had
// room for, and fails one whose container crashes in each pause between two starts. A
// node may come, and a start may succeed: neither is an end, and a phase that comes and
// goes with them would be an event each time.
func pod(live *unstructured.Unstructured) Judgement {
	switch word(live, "status", "phase") {
	case "":
		return progressing("the Pod has no phase yet")
	case "Succeeded":
		return ready()
	case "Failed":
		return failed(joined("the Pod has failed", ending(live)))
	case "Running":
		if holds(live, "Ready") {
			return ready()
		}
		return progressing(joined("the Pod is running and not ready", obstacle(live)))
	default:
		return progressing(joined("the Pod is pending", obstacle(live)))
	}
}

// ending says why a Pod has failed. What a container says of its own end is left out:
// it may be anything, also a secret.
func ending(live *unstructured.Unstructured) string {
	if text := joined(word(live, "status", "reason"), word(live, "status", "message")); text != "" {
		return text
	}
	for _, c := range containers(live) {
		if code, _ := number(c, "state", "terminated", "exitCode"); code != 0 {
			return fmt.Sprintf("container %s ended with exit code %d", word(c, "name"), code)
		}
	}
	return ""
}

// Obstacle says what keeps a Pod from being ready, or "" when nothing does or nothing is
// known of it.
func Obstacle(pod *unstructured.Unstructured) string {
	if j := Object(pod, "ready"); j.Health != Ready {
		return j.Message
	}
	return ""
}

// Claims returns the names of the claims of volumes that a Pod mounts.
func Claims(pod *unstructured.Unstructured) []string {
	var out []string
	for _, volume := range entries(pod, "spec", "volumes") {
		if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// obstacle says what keeps a Pod from being ready, in words that stay the same while it
// is tried again.
func obstacle(live *unstructured.Unstructured) string {
	if c, ok := find(live, "PodScheduled"); ok && c.status == "False" {
		return joined("no node was found for it", c.reason)
	}
	for _, c := range containers(live) {
		waits := word(c, "state", "waiting", "reason")
		restarts, _ := number(c, "restartCount")
		done, _, _ := unstructured.NestedBool(c.Object, "ready")
		switch {
		case waits == "ErrImagePull" || waits == "ImagePullBackOff":
			return "the image of container " + word(c, "name") + " cannot be pulled"
		case restarts > 0 && !done:
			return "container " + word(c, "name") + " was restarted"
		}
	}
	return ""
}

// containers are the states of a Pod's containers, in the order in which they start.
func containers(live *unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, m := range entries(live, "status", list) {
			out = append(out, &unstructured.Unstructured{Object: m})
		}
	}
	return out
}
