package stored

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/crd"
)

// A LossError says why a definition is not installed: a resource would lose a field, or has a value that is refused.
type LossError struct {
	// Definition is its name.
	Definition string
	// Kind, Resource and UID are those of the resource; they are empty if the resources could not be looked at.
	Kind     string
	Resource types.NamespacedName
	UID      types.UID
	// Version is the version of the definition.
	Version string
	// Field is the path of the field in the resource, and Why what is wrong with it. Neither has a value of the resource.
	Field, Why string
	// Accept is the value of the annotation by which it is installed nevertheless.
	Accept string
}

// Error names the resource, the field, and how to go on.
func (e *LossError) Error() string {
	what := fmt.Sprintf("its resources cannot be looked at: %s", e.Why)
	change := ""
	if e.Kind != "" {
		what = fmt.Sprintf("%s %s: %s: %s", e.Kind, nameOf(e.Resource), e.Field, e.Why)
		change = "change the resource, or "
	}
	return fmt.Sprintf("the definition %s is narrower than the present one, which stays: %s (version %s); %saccept it by kubectl annotate crd %s --overwrite %s=%s",
		e.Definition, what, e.Version, change, e.Definition, crd.AcceptedLossAnnotation, e.Accept)
}

// nameOf returns the namespace, if there is one, and the name.
func nameOf(n types.NamespacedName) string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.String()
}
