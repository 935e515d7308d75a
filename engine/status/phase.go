package status

import "slices"

// Phase is the state of a custom resource in one word.
type Phase string

// The phases.
const (
	PhaseCreated     Phase = "Created"
	PhaseReconciling Phase = "Reconciling"
	PhaseWaiting     Phase = "Waiting"
	PhaseReady       Phase = "Ready"
	PhaseScaling     Phase = "Scaling"
	PhaseFailed      Phase = "Failed"
	PhaseDeleting    Phase = "Deleting"
)

// next returns the phase after a rollout, given the one before it.
func next(before Phase, c Completion) Phase {
	switch {
	case c.Deleting:
		return PhaseDeleting
	case c.stopped():
		return PhaseFailed
	case c.Ready():
		return PhaseReady
	case c.Planned && (before == "" || before == PhaseCreated):
		return PhaseCreated
	case c.anyIn(Failed):
		return PhaseFailed
	case c.scaling(before):
		return PhaseScaling
	case c.Change != Unchanged || c.Pruning != "":
		return PhaseReconciling
	}
	return PhaseWaiting
}

// scaling reports whether a resource that was ready is not ready only because of a change of
// replicas.
func (c Completion) scaling(before Phase) bool {
	return before == PhaseScaling && c.Change != Changed || before == PhaseReady && c.Change == Rescaled
}

func (c Completion) anyIn(s State) bool {
	return slices.ContainsFunc(c.Components, func(comp Component) bool { return comp.State == s })
}
