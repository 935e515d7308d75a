package ownership

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Claim is what an object says of a custom resource that has it and that would
// adopt it from anybody else. Two such resources would take it from each other for
// ever, so the one that has it keeps it.
type Claim struct {
	Kind schema.GroupKind
	Key  types.NamespacedName
	// Mark is the resource as a person writes it.
	Mark string
	// Evidence is what shows that the resource is still there.
	Evidence Evidence
}

// Evidence says how sure it is that the owner in an object's marks exists.
type Evidence string

// The proofs.
const (
	// ByReference: the object refers to it, and the garbage collector takes what
	// refers to nobody.
	ByReference Evidence = "ByReference"
	// ByMark: only a mark speaks of it, which may have outlived it.
	ByMark Evidence = "ByMark"
)

// ClaimOn returns the claim on an object, if there is one.
func ClaimOn(live *unstructured.Unstructured) (Claim, bool) {
	marks := live.GetAnnotations()
	kind, key, ok := ParseOwner(marks[OwnerAnnotation])
	if !ok || marks[AdoptMark] != adopts {
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
