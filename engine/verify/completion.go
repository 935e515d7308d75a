package verify

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The kinds of which objects may run to their end.
const (
	jobKind = "Job.batch"
	podKind = "Pod"
)

// Completion returns how an object that runs to completion has ended, a Job or a Pod that is
// not restarted: Ready if it has succeeded, or Failed. It returns Progressing for an object
// that still runs, and for kinds that do not run to completion.
func Completion(live *unstructured.Unstructured) Health {
	switch kind := live.GroupVersionKind().GroupKind().String(); {
	case kind == jobKind:
		return completion(conditionIsTrue(live, "Complete"), conditionIsTrue(live, "Failed"))
	case kind == podKind && stringAt(live, "spec", "restartPolicy") != "Always":
		phase := stringAt(live, "status", "phase")
		return completion(phase == "Succeeded", phase == "Failed")
	}
	return Progressing
}

func completion(well, badly bool) Health {
	switch {
	case well:
		return Ready
	case badly:
		return Failed
	}
	return Progressing
}

// HasTTL reports whether an object is deleted automatically some time after it has ended.
func HasTTL(live *unstructured.Unstructured) bool {
	_, set := intAt(live, "spec", "ttlSecondsAfterFinished")
	return set && live.GetKind() == "Job"
}
