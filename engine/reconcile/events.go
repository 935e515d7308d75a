package reconcile

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A Recorder makes events of a resource known to people.
type Recorder interface {
	// Record makes one event known.
	Record(resource *unstructured.Unstructured, event rollout.Event)
}

// recordEvent makes an event known.
func (s *state) recordEvent(e rollout.Event) {
	e.Message = status.Shorten(s.redactor.Text(e.Message), maxEvent)
	s.Recorder.Record(s.cr, e)
}

// recordObjectEvents records what happened to objects, one event for each kind of
// thing that happened: eight created objects are one event that names them.
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

// recordTransition records that the resource became ready, or failed.
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

// maxEvent is what the API server accepts of an event's text.
const maxEvent = 1024

// ServedTwice is the event of a resource whose status another process writes as well.
func ServedTwice() rollout.Event {
	return rollout.Event{
		Reason: "ServedTwice", Warning: true,
		Message: "another process serves this kind and shares no Lease with this one, so each may undo what the other does: end one of them, " +
			"or start both with --leader-elect and the same --leader-elect-namespace",
	}
}
