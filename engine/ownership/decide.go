package ownership

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Decision is what to do about an object.
type Decision string

// The decisions.
const (
	// Keep: the object is in sync, and costs no request.
	Keep Decision = "Keep"
	// Create: the object is absent.
	Create Decision = "Create"
	// Update: the package renders something else than was last applied.
	Update Decision = "Update"
	// Repair: another client changed a field that the package renders.
	Repair Decision = "Repair"
	// Adopt: somebody else owns the object, and the policy says to take it over.
	Adopt Decision = "Adopt"
	// Refuse: somebody else owns the object.
	Refuse Decision = "Refuse"
	// Conflict: another custom resource owns the object, and both would adopt it. The rollout
	// refuses it unless that resource turns out to be gone.
	Conflict Decision = "Conflict"
	// WaitForDeletion: the object has to disappear first.
	WaitForDeletion Decision = "WaitForDeletion"
)

// An Action is what to do about an object, and why.
type Action struct {
	Decision Decision
	Reason   string
}

// Decide returns what to do about one object.
func Decide(want Desired, live *unstructured.Unstructured, owner Owner) Action {
	situation, whose := Classify(live, owner)
	switch situation {
	case Absent:
		return Action{Decision: Create}
	case Terminating:
		return Action{Decision: WaitForDeletion, Reason: "it is still being deleted"}
	case Predecessor:
		return Action{Decision: WaitForDeletion, Reason: fmt.Sprintf("it belongs to a deleted %s of the same name and is about to be garbage-collected", owner.Kind)}
	case Foreign:
		return decideAdoption(want, live, whose)
	case Unproven:
		return decideUnproven(live)
	case OutOfReach:
		return Action{Decision: Refuse, Reason: "it is out of reach of its owner"}
	case Owned:
		return decideOwned(want, live)
	}
	return Action{Decision: Refuse, Reason: fmt.Sprintf("unknown situation %s", situation)}
}

// decideUnproven restores the marks of an object whatever its policy, because it has no other owner.
func decideUnproven(live *unstructured.Unstructured) Action {
	if live.GetDeletionTimestamp() != nil {
		return Action{Decision: WaitForDeletion, Reason: "it is still being deleted"}
	}
	return Action{Decision: Repair, Reason: "the marks that prove whose it is are not there"}
}

func decideOwned(want Desired, live *unstructured.Unstructured) Action {
	if want.Policy.Apply == "createOnly" {
		return Action{Decision: Keep}
	}
	switch live.GetAnnotations()[AppliedAnnotation] {
	case want.Digest:
	case "":
		return Action{Decision: Repair, Reason: "its annotations were removed by another client"}
	default:
		return Action{Decision: Update}
	}
	if path, ok := driftedField(want, live); ok {
		return Action{Decision: Repair, Reason: textOf(path) + " was changed by another client"}
	}
	return Action{Decision: Keep}
}
