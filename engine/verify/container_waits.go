package verify

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A containerWait is what is known of a reason for which Kubernetes has not started a container.
type containerWait struct {
	// says is what the status says of the container, with its name.
	says string
	// quoted says that the message of Kubernetes is the same with each retry and names only what the Pod refers
	// to, so that it can be in a status. Others may have a count, or the arguments of the container.
	quoted bool
	// turns says that the reason takes turns with a container that runs.
	turns bool
	// delay says that the message of Kubernetes has nothing but when it tries again.
	delay bool
}

// containerWaits are the reasons by their name in state.waiting. The others are no problem, such as
// ContainerCreating, or not known.
var containerWaits = map[string]containerWait{
	"CrashLoopBackOff":           {says: wasRestarted, turns: true, delay: true},
	"CreateContainerConfigError": {says: "container %s cannot be configured", quoted: true},
	"CreateContainerError":       {says: "container %s cannot be created"},
	"ErrImagePull":               {says: "the image of container %s cannot be pulled"},
	"ImagePullBackOff":           {says: "the image of container %s cannot be pulled"},
	"InvalidImageName":           {says: "the image of container %s has an invalid name", quoted: true},
	"RunContainerError":          {says: "container %s cannot be started", turns: true},
}

// wasRestarted is said of a container while it runs again, and while it waits for that: the text must not
// change with each restart.
const wasRestarted = "container %s was restarted"

// WaitMessage returns what Kubernetes adds to the reason for which a container waits, for a person who reads the
// Pod, or "" if that is only when it tries again.
func WaitMessage(reason, message string) string {
	if containerWaits[reason].delay {
		return ""
	}
	return message
}

// containerProblem returns why a container of a Pod does not run, from its status, or "".
func containerProblem(pod, container *unstructured.Unstructured) string {
	name, reason := stringAt(container, "name"), stringAt(container, "state", "waiting", "reason")
	restarts, _ := intAt(container, "restartCount")
	done, _, _ := unstructured.NestedBool(container.Object, "ready")
	wait, known := containerWaits[reason]
	switch {
	case known && wait.quoted && !expandsSubPath(pod, name):
		return join(fmt.Sprintf(wait.says, name), stringAt(container, "state", "waiting", "message"))
	case known && (restarts == 0 || !wait.turns):
		return fmt.Sprintf(wait.says, name)
	case restarts > 0 && !done:
		return fmt.Sprintf(wasRestarted, name)
	}
	return ""
}

// expandsSubPath reports whether a container mounts a path that is made of its variables: it would be in the
// message of Kubernetes, and a variable may be that of a Secret.
func expandsSubPath(pod *unstructured.Unstructured, name string) bool {
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range mapsAt(pod, "spec", list) {
			for _, mount := range mapsAt(&unstructured.Unstructured{Object: c}, "volumeMounts") {
				if mount["subPathExpr"] != nil && c["name"] == name {
					return true
				}
			}
		}
	}
	return false
}
