package verify

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Ended returns how an object has ended that is made to end, a Job or a Pod that is not
// restarted: Ready when it has done its work, and Failed. Progressing is what runs, and
// what does not end.
func Ended(live *unstructured.Unstructured) Health {
	switch kind := live.GroupVersionKind().GroupKind().String(); {
	case kind == "Job.batch":
		return finished(holds(live, "Complete"), holds(live, "Failed"))
	case kind == "Pod" && word(live, "spec", "restartPolicy") != "Always":
		phase := word(live, "status", "phase")
		return finished(phase == "Succeeded", phase == "Failed")
	}
	return Progressing
}

func finished(well, badly bool) Health {
	switch {
	case well:
		return Ready
	case badly:
		return Failed
	}
	return Progressing
}

// Expires reports whether an object is deleted some time after it has ended, without
// anybody who asks for that.
func Expires(live *unstructured.Unstructured) bool {
	_, set := number(live, "spec", "ttlSecondsAfterFinished")
	return set && live.GetKind() == "Job"
}
