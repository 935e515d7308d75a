package verify

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object judges a live object by its kind and the policy's verify.
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
	if rule, ok := kinds[live.GroupVersionKind().GroupKind()]; ok {
		return first(unseen(live), rule(live))
	}
	return first(kstatus(live), current(live, "Ready"))
}

// Reported judges a custom resource by its condition Ready alone, which must be there
// and be about the present generation.
func Reported(live *unstructured.Unstructured) Judgement {
	c, ok := find(live, "Ready")
	switch {
	case !ok:
		return progressing("its operator has not reported on it yet")
	case c.stale(live):
		return progressing("its operator has not seen the present generation yet")
	case c.status == "True":
		return ready()
	default:
		return progressing(cmp.Or(c.message, c.reason))
	}
}

// Complaint returns what an object says of itself in its condition Ready while that is not
// True, or "": of one that is being deleted, what holds it. One that is gone says nothing.
func Complaint(live *unstructured.Unstructured) string {
	if live == nil {
		return ""
	}
	c, ok := find(live, "Ready")
	if !ok || c.status == "True" {
		return ""
	}
	return oneLine(cmp.Or(c.message, c.reason))
}

// first returns the first judgement that is not Ready.
func first(all ...Judgement) Judgement {
	for _, j := range all {
		if j.Health != Ready {
			return j
		}
	}
	return ready()
}

// kstatus judges by the rules of that library.
func kstatus(live *unstructured.Unstructured) Judgement {
	result, err := status.Compute(live)
	if err != nil {
		// kstatus errors on a status of an unexpected form, which another
		// controller wrote and may write again.
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

// unseen waits until a status that names a generation names the present one.
func unseen(live *unstructured.Unstructured) Judgement {
	seen, reported := number(live, "status", "observedGeneration")
	if reported && seen != live.GetGeneration() {
		return progressing(fmt.Sprintf("%s generation is %d, but latest observed generation is %d", live.GetKind(), live.GetGeneration(), seen))
	}
	return ready()
}

// counted waits for the first status of a kind whose controller always names the
// generation. Counts that are not there yet look like zero of zero.
func counted(live *unstructured.Unstructured) Judgement {
	if _, ok := number(live, "status", "observedGeneration"); !ok {
		return progressing("its controller has not reported on it yet")
	}
	return ready()
}

// current waits until a condition, if it is there and names a generation, names the
// present one.
func current(live *unstructured.Unstructured, kind string) Judgement {
	if c, ok := find(live, kind); ok && c.stale(live) {
		return progressing("its condition " + kind + " is about an older spec")
	}
	return ready()
}

// condition is one of an object's status.
type condition struct {
	status, reason, message string
	// about is the generation that it is about, if it says so.
	about int64
	says  bool
}

// stale reports whether a condition says that it is about another generation than
// the present one.
func (c condition) stale(live *unstructured.Unstructured) bool {
	return c.says && c.about != live.GetGeneration()
}

// text is what a condition says, to a person.
func (c condition) text() string { return joined(c.reason, c.message) }

// find returns the condition of a type.
func find(live *unstructured.Unstructured, kind string) (condition, bool) {
	for _, m := range entries(live, "status", "conditions") {
		if m["type"] != kind {
			continue
		}
		var c condition
		c.status, _ = m["status"].(string)
		c.reason, _ = m["reason"].(string)
		text, _ := m["message"].(string)
		c.message = oneLine(text)
		c.about, c.says = m["observedGeneration"].(int64)
		return c, true
	}
	return condition{}, false
}

// holds reports whether the condition of a type is true.
func holds(live *unstructured.Unstructured, kind string) bool {
	c, _ := find(live, kind)
	return c.status == "True"
}

// entries returns the maps of a list. What is of another form is taken for absent: the
// status of Kubernetes' own kinds has a schema.
func entries(live *unstructured.Unstructured, path ...string) []map[string]any {
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

// number returns an integer, and whether it is there.
func number(live *unstructured.Unstructured, path ...string) (int64, bool) {
	n, found, err := unstructured.NestedInt64(live.Object, path...)
	return n, found && err == nil
}

// word returns a text, or nothing.
func word(live *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(live.Object, path...)
	return s
}

// joined joins those texts that are not empty.
func joined(texts ...string) string {
	var out []string
	for _, s := range texts {
		if s = oneLine(s); s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, ": ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
