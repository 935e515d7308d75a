package reconcile

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A Recorder writes Kubernetes Events of a resource.
type Recorder interface {
	// Record writes one Event.
	Record(resource *unstructured.Unstructured, event rollout.Event)
}

// recordEvent writes an Event of the resource without the content of Secrets.
func (s *state) recordEvent(e rollout.Event) {
	e.Message = status.Shorten(s.redactor.Text(e.Message), maxEvent)
	s.Recorder.Record(s.cr, e)
}

// recordObjectEvents writes one Event for each reason: eight created objects are one Event that
// names them all.
func (s *state) recordObjectEvents(happened []rollout.Event) {
	var order []string
	messages := map[string][]string{}
	warn := map[string]bool{}
	for _, e := range happened {
		if _, seen := messages[e.Reason]; !seen {
			order = append(order, e.Reason)
		}
		warn[e.Reason] = warn[e.Reason] || e.Warning
		messages[e.Reason] = append(messages[e.Reason], e.Message)
	}
	for _, reason := range order {
		text := status.List(messages[reason])
		s.log.Info(reason, "objects", text)
		s.recordEvent(rollout.Event{Reason: reason, Message: text, Warning: warn[reason]})
	}
}

// TemplateDiffers returns the event of a resource that shows a fault of the engine: what was evaluated
// without CUE differs from what CUE says.
func TemplateDiffers() rollout.Event {
	return rollout.Event{
		Reason: "TemplateDiffers", Warning: true,
		Message: "a compiled template gave another result than CUE: it is not used any more, and every resource of the kind is reconciled again; this is a fault of the operator, please report it with the resource and the package",
	}
}

// recordTransition writes an Event when the resource becomes ready or fails.
func (s *state) recordTransition(before, after map[string]any) {
	from, to := status.PhaseOf(before), status.PhaseOf(after)
	if from == to {
		return
	}
	message := ""
	if ready := status.Condition(after, status.ConditionReady); ready != nil {
		message = ready.Message
	}
	s.log.Info("phase", "from", from, "to", to, "message", message)
	switch to {
	case status.PhaseReady:
		s.recordEvent(rollout.Event{Reason: "BecameReady", Message: message})
	case status.PhaseFailed:
		s.recordEvent(rollout.Event{Reason: "Failed", Message: message, Warning: true})
	case status.PhaseCreated, status.PhaseReconciling, status.PhaseWaiting, status.PhaseScaling, status.PhaseDeleting:
	}
}

// maxEvent is the limit of the API server for the message of an Event, in bytes.
const maxEvent = 1024

// NotSelected returns the event of a resource that has lost a label by which an operator selects it.
func NotSelected(selector string) rollout.Event {
	return rollout.Event{
		Reason: "NotSelected", Warning: true,
		Message: "this operator serves resources with the labels " + selector + ", and this one no longer has them: it is left as it is, with its objects, " +
			"and its deletion waits for an operator that selects it",
	}
}

// ServedTwice returns the event of a resource whose status another process writes, too.
func ServedTwice() rollout.Event {
	return rollout.Event{
		Reason: "ServedTwice", Warning: true,
		Message: "another process serves this kind and shares no Lease with this one, so each may undo what the other does: end one of them, " +
			"or start both with --leader-elect and the same --leader-elect-namespace",
	}
}
