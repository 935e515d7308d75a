package ownership

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Claim is the mark of a custom resource on an object that it owns and would adopt from any
// other owner. Two such resources would take the object from each other forever, so the
// current owner keeps it.
type Claim struct {
	Kind schema.GroupKind
	Key  types.NamespacedName
	// Mark is the resource as a person writes it.
	Mark string
	// Evidence is what shows that the resource still exists.
	Evidence Evidence
}

// Evidence says what shows that the owner in the marks of an object exists.
type Evidence string

// The kinds of evidence.
const (
	// ByReference: the object has an owner reference to it. The garbage collector deletes
	// objects whose owner is gone.
	ByReference Evidence = "ByReference"
	// ByMark: only a mark names it, and the mark may have outlived it.
	ByMark Evidence = "ByMark"
)

// ClaimOn returns the claim on an object, if there is one.
func ClaimOn(live *unstructured.Unstructured) (Claim, bool) {
	marks := live.GetAnnotations()
	kind, key, ok := ParseOwner(marks[OwnerAnnotation])
	if !ok || marks[AdoptAnnotation] != adopts {
		return Claim{}, false
	}
	c := Claim{Kind: kind, Key: key, Mark: marks[OwnerAnnotation], Evidence: ByMark}
	for _, ref := range live.GetOwnerReferences() {
		if ref.Controller == nil || !*ref.Controller {
			continue
		}
		if ref.Kind != kind.Kind || ref.Name != key.Name || !strings.HasPrefix(ref.APIVersion, kind.Group+"/") {
			return Claim{}, false // it was taken by a controller that leaves no marks
		}
		c.Evidence = ByReference
	}
	return c, true
}

// decideAdoption decides about an object that somebody else owns.
func decideAdoption(want Desired, live *unstructured.Unstructured, whose string) Action {
	claim, claimed := ClaimOn(live)
	kept := fmt.Sprintf("it exists already and belongs to %s, which keeps it: its own policy says adopt: true", claim.Mark)
	switch {
	case claimed && want.Policy.Adopt:
		return Action{Decision: Conflict, Reason: kept}
	case claimed:
		return Action{Decision: Refuse, Reason: kept}
	case want.Policy.Adopt:
		return Action{Decision: Adopt, Reason: "taken over from " + whose}
	}
	return Action{Decision: Refuse, Reason: fmt.Sprintf("it exists already and belongs to %s; policy.%s.adopt: true takes it over", whose, want.Object)}
}
