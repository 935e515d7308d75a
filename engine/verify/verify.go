// Package verify judges, purely, whether an object or a component is healthy. It
// reads no cluster and evaluates no CUE: it is given live objects and the
// verdicts of predicates.
//
// The built-in judgement of an object is kstatus, with the check that its
// controller has seen the latest generation, and one correction: a Job is ready
// when it is complete, not when it runs. A kind without a rule is judged by its
// Ready condition, and without one by its existence.
package verify

import (
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/program"
)

// Health is the state of an object or of a component.
type Health string

// The states of health.
const (
	// Ready: it is as it should be.
	Ready Health = "Ready"
	// Progressing: it is not there yet, and may get there.
	Progressing Health = "Progressing"
	// Failed: it will not get there without a change.
	Failed Health = "Failed"
	// Broken: it cannot be judged, because a predicate of the package is wrong.
	Broken Health = "Broken"
)

// A Judgement is a state of health with its reason.
type Judgement struct {
	Health Health
	// Message says what is awaited or wrong; it is empty for Ready. It carries
	// no time and no count that changes without the state changing.
	Message string
}

// Object judges a live object by its kind and the policy's verify.
func Object(live *unstructured.Unstructured, policy string) Judgement {
	if policy == "none" {
		return Judgement{Health: Ready}
	}
	if live == nil {
		return Judgement{Health: Progressing, Message: "it does not exist yet"}
	}
	if policy == "exists" {
		return Judgement{Health: Ready}
	}
	result, err := status.Compute(live)
	if err != nil {
		// kstatus errors on a status of an unexpected form, which another
		// controller wrote and may write again.
		return Judgement{Health: Progressing, Message: "its status cannot be read: " + err.Error()}
	}
	switch result.Status {
	case status.FailedStatus:
		return Judgement{Health: Failed, Message: messageOf(result)}
	case status.CurrentStatus:
		if isJob(live.GroupVersionKind()) && !complete(live) {
			return Judgement{Health: Progressing, Message: "the Job is running"}
		}
		return Judgement{Health: Ready}
	default:
		return Judgement{Health: Progressing, Message: messageOf(result)}
	}
}

// messageOf returns what kstatus says; for a few kinds that is nothing.
func messageOf(result *status.Result) string {
	if text := oneLine(result.Message); text != "" {
		return text
	}
	for _, c := range result.Conditions {
		if c.Reason != "" {
			return c.Reason
		}
	}
	return "it is " + string(result.Status)
}

func isJob(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "batch" && gvk.Kind == "Job"
}

// complete reports whether a Job has the condition Complete.
func complete(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] == "Complete" && m["status"] == "True" {
			return true
		}
	}
	return false
}

// Reported judges a custom resource by its condition Ready alone, which must be there
// and be about the present generation.
func Reported(live *unstructured.Unstructured) Judgement {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] != "Ready" {
			continue
		}
		if observed, ok := m["observedGeneration"].(int64); ok && observed != live.GetGeneration() {
			return Judgement{Health: Progressing, Message: "its operator has not seen the present generation yet"}
		}
		if m["status"] == "True" {
			return Judgement{Health: Ready}
		}
		text, _ := m["message"].(string)
		return Judgement{Health: Progressing, Message: oneLine(text)}
	}
	return Judgement{Health: Progressing, Message: "its operator has not reported on it yet"}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Predicates judges a component's own conditions: failed ones win, then broken
// ones, then the first that does not hold.
func Predicates(verify, failed []program.Predicate) Judgement {
	for _, p := range failed {
		switch p.Verdict {
		case program.True:
			return Judgement{Health: Failed, Message: fmt.Sprintf("failed.%s holds: %s", p.Name, p.Explain())}
		case program.Broken:
			return Judgement{Health: Broken, Message: fmt.Sprintf("failed.%s cannot be decided: %s", p.Name, p.Explain())}
		case program.False, program.Unknown: // it has not failed as far as is known
		}
	}
	first := Judgement{Health: Ready}
	for _, p := range verify {
		switch p.Verdict {
		case program.True:
		case program.Broken:
			return Judgement{Health: Broken, Message: fmt.Sprintf("verify.%s cannot be decided: %s", p.Name, p.Explain())}
		case program.False, program.Unknown:
			if first.Health == Ready {
				first = Judgement{Health: Progressing, Message: fmt.Sprintf("verify.%s: %s", p.Name, p.Explain())}
			}
		}
	}
	return first
}
