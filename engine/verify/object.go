package verify

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/redact"
)

// Object judges a live object by its kind and by the field verify of its policy. live is nil if
// the object does not exist.
func Object(live *unstructured.Unstructured, policy string) Judgement {
	switch {
	case policy == "none":
		return ready()
	case live == nil:
		return progressing("it does not exist yet")
	case policy == "exists":
		return ready()
	case live.GetDeletionTimestamp() != nil:
		return progressing("it is being deleted")
	}
	if rule, ok := healthByKind[live.GroupVersionKind().GroupKind()]; ok {
		return firstNotReady(generationObserved(live), rule(live))
	}
	return firstNotReady(generationObserved(live), stalledNow(live), kstatus(live), conditionCurrent(live, "Ready"))
}

// stalledNow waits while the condition Stalled is true and about an older spec: the latest may be what ends that.
func stalledNow(live *unstructured.Unstructured) Judgement {
	if conditionIsTrue(live, "Stalled") {
		return conditionCurrent(live, "Stalled")
	}
	return ready()
}

// ReadyCondition judges a custom resource only by its condition Ready, which must exist and
// be about the current generation.
func ReadyCondition(live *unstructured.Unstructured) Judgement {
	c, ok := findCondition(live, "Ready")
	switch {
	case !ok:
		return progressing("its operator has not reported on it yet")
	case c.stale(live):
		return progressing("its operator has not seen the current generation yet")
	case c.status == "True":
		return ready()
	default:
		return progressing(cmp.Or(c.message, c.reason))
	}
}

// NotReadyMessage returns the message of an object's condition Ready if that is not True, or "".
// For an object that is being deleted, that is what blocks the deletion. live may be nil.
func NotReadyMessage(live *unstructured.Unstructured) string {
	if live == nil {
		return ""
	}
	c, ok := findCondition(live, "Ready")
	if !ok || c.status == "True" {
		return ""
	}
	return redact.OneLine(cmp.Or(c.message, c.reason))
}

// firstNotReady returns the first judgement that is not Ready, or else Ready.
func firstNotReady(all ...Judgement) Judgement {
	for _, j := range all {
		if j.Health != Ready {
			return j
		}
	}
	return ready()
}

// kstatus judges by the rules of the kstatus library.
func kstatus(live *unstructured.Unstructured) Judgement {
	result, err := status.Compute(live)
	if err != nil {
		// kstatus errors on a status of an unexpected form. The controller that wrote it may
		// still correct it, so this is not a failure.
		return progressing("its status cannot be read: " + err.Error())
	}
	switch result.Status {
	case status.FailedStatus:
		return failed(messageOf(result))
	case status.CurrentStatus:
		return ready()
	default:
		return progressing(messageOf(result))
	}
}

// messageOf returns the message of kstatus, which is empty for a few kinds, or else a reason.
func messageOf(result *status.Result) string {
	if text := redact.OneLine(result.Message); text != "" {
		return text
	}
	for _, c := range result.Conditions {
		if c.Reason != "" {
			return c.Reason
		}
	}
	return "it is " + string(result.Status)
}

// generationObserved waits until status.observedGeneration, if there is one, is current.
func generationObserved(live *unstructured.Unstructured) Judgement {
	seen, reported := intAt(live, "status", "observedGeneration")
	if reported && seen != live.GetGeneration() {
		return progressing(fmt.Sprintf("%s generation is %d, but latest observed generation is %d", live.GetKind(), live.GetGeneration(), seen))
	}
	return ready()
}

// statusReported waits for the first status of a kind whose controller always sets
// observedGeneration. Without a status, the counts look like zero of zero.
func statusReported(live *unstructured.Unstructured) Judgement {
	if _, ok := intAt(live, "status", "observedGeneration"); !ok {
		return progressing("its controller has not reported on it yet")
	}
	return ready()
}

// conditionCurrent waits until the observedGeneration of a condition, if there is one, is
// current.
func conditionCurrent(live *unstructured.Unstructured, kind string) Judgement {
	if c, ok := findCondition(live, kind); ok && c.stale(live) {
		return progressing("its condition " + kind + " is about an older spec")
	}
	return ready()
}

// condition is a condition of an object's status.
type condition struct {
	status, reason, message string
	// observedGeneration is set if hasGeneration.
	observedGeneration int64
	hasGeneration      bool
}

// stale reports whether a condition is about another generation than the current one.
func (c condition) stale(live *unstructured.Unstructured) bool {
	return c.hasGeneration && c.observedGeneration != live.GetGeneration()
}

// text returns reason and message for a person.
func (c condition) text() string { return join(c.reason, c.message) }

// findCondition returns the condition of a type, and whether it exists.
func findCondition(live *unstructured.Unstructured, kind string) (condition, bool) {
	for _, m := range mapsAt(live, "status", "conditions") {
		if m["type"] != kind {
			continue
		}
		var c condition
		c.status, _ = m["status"].(string)
		c.reason, _ = m["reason"].(string)
		text, _ := m["message"].(string)
		c.message = redact.OneLine(text)
		c.observedGeneration, c.hasGeneration = m["observedGeneration"].(int64)
		return c, true
	}
	return condition{}, false
}

// conditionIsTrue reports whether the condition of a type exists and is True.
func conditionIsTrue(live *unstructured.Unstructured, kind string) bool {
	c, _ := findCondition(live, kind)
	return c.status == "True"
}

// mapsAt returns the maps in the list at a path. Values of another form count as absent: the
// status of built-in kinds has a schema.
func mapsAt(live *unstructured.Unstructured, path ...string) []map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
	list, _ := found.([]any)
	var out []map[string]any
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// intAt returns the integer at a path, and whether it exists.
func intAt(live *unstructured.Unstructured, path ...string) (int64, bool) {
	n, found, err := unstructured.NestedInt64(live.Object, path...)
	return n, found && err == nil
}

// stringAt returns the string at a path, or "".
func stringAt(live *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(live.Object, path...)
	return s
}

// join joins the texts that are not empty with colons.
func join(texts ...string) string {
	var out []string
	for _, s := range texts {
		if s = redact.OneLine(s); s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, ": ")
}
