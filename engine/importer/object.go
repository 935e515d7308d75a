package importer

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	engineobject "operetta.dev/engine/object"
)

// An Object is one object to import.
type Object struct {
	Manifest map[string]any
	// At is where it is written, as file:line, for messages.
	At string
}

// An object is an Object as it is imported.
type object struct {
	*unstructured.Unstructured

	at    string
	scope cluster.Scope
	// component and name are its place in the package.
	component, name string
}

// String names the object for messages.
func (o *object) String() string {
	return fmt.Sprintf("%s: %s %s", o.at, o.GroupVersionKind().GroupKind(), o.GetName())
}

// groupKind is its kind as the contract writes kinds, such as Deployment.apps.
func (o *object) groupKind() string { return o.GroupVersionKind().GroupKind().String() }

// serverMetadata is the metadata that an API server maintains, and ownerReferences, which the engine sets.
var serverMetadata = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp", "selfLink", "ownerReferences"}

// engineMarks begin the labels and annotations with which an operator marks its objects.
const engineMarks = "operetta.dev/"

// read returns the objects as they are imported. It errors with all reasons why some cannot be.
func read(all []Object) ([]*object, []string, error) {
	var out []*object
	var refusals, notes []string
	known := memory.New()
	for _, o := range all {
		if kind, scope, defines := cluster.DefinedBy(o.Manifest); defines {
			known.Serve(kind, scope)
		}
	}
	seen := map[string]string{}
	for _, given := range all {
		o := &object{Unstructured: (&unstructured.Unstructured{Object: given.Manifest}).DeepCopy(), at: given.At}
		if reason := o.refusal(); reason != "" {
			refusals = append(refusals, o.at+": "+reason)
			continue
		}
		scope, err := known.Scope(context.Background(), o.GroupVersionKind())
		if err != nil {
			refusals = append(refusals, fmt.Sprintf("%s: it is not known whether a %s is namespaced; give its CustomResourceDefinition, too", o.at, o.GetKind()))
			continue
		}
		o.scope = scope
		notes = append(notes, o.portNotes()...)
		if cleaned := o.clean(); len(cleaned) > 0 {
			notes = append(notes, fmt.Sprintf("%s: left out %s, which a cluster maintains", o, strings.Join(cleaned, ", ")))
		}
		identity := o.groupKind() + " " + o.GetNamespace() + "/" + o.GetName()
		if before, twice := seen[identity]; twice {
			refusals = append(refusals, fmt.Sprintf("%s: %s %s is there twice, also at %s", o.at, o.groupKind(), o.GetName(), before))
			continue
		}
		seen[identity] = o.at
		out = append(out, o)
	}
	if len(refusals) > 0 {
		return nil, nil, &RefusedError{refusals}
	}
	return out, notes, nil
}

// refusal returns why an object cannot be imported, or "".
func (o *object) refusal() string {
	kind := o.GroupVersionKind()
	switch {
	case kind.Kind == "" || kind.Version == "":
		return "it has no apiVersion and kind"
	case !word.MatchString(kind.Kind) || !word.MatchString(kind.Version):
		return fmt.Sprintf("%q of %q is no kind", kind.Kind, o.GetAPIVersion())
	case o.GetName() == "" && o.GetGenerateName() != "":
		return fmt.Sprintf("the %s has no name but generateName, so that it would be another object each time", kind.Kind)
	case o.GetName() == "":
		return fmt.Sprintf("the %s has no name", kind.Kind)
	case !objectName.MatchString(o.GetName()) || o.GetNamespace() != "" && !objectName.MatchString(o.GetNamespace()):
		return fmt.Sprintf("%q in namespace %q is no name of a %s", o.GetName(), o.GetNamespace(), kind.Kind)
	}
	return ""
}

var (
	word = regexp.MustCompile(`^[a-zA-Z0-9]+$`)
	// objectName matches the names that an API server accepts for some kind. Those of roles have colons.
	objectName = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9._:@]*[a-zA-Z0-9])?$`)
)

// clean removes what is not part of a manifest, and returns what it was, for a note.
func (o *object) clean() []string {
	out := o.removeAddresses() // while the metadata says whether the object was read from a cluster
	if _, has := o.Object["status"]; has {
		delete(o.Object, "status")
		out = append(out, "status")
	}
	for _, field := range serverMetadata {
		if _, has, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", field); has {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
			if field != "creationTimestamp" {
				out = append(out, "metadata."+field)
			}
		}
	}
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
		out = append(out, corev1.LastAppliedConfigAnnotation)
	}
	for _, field := range []string{"labels", "annotations"} {
		found, _, _ := unstructured.NestedMap(o.Object, "metadata", field)
		for name := range found {
			if strings.HasPrefix(name, engineMarks) {
				unstructured.RemoveNestedField(o.Object, "metadata", field, name)
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	engineobject.DropNulls(o.Object) // templates of Helm print many
	if o.scope == cluster.ClusterScoped {
		o.SetNamespace("")
	}
	return out
}

// namespaces returns the namespaces of the objects that name one, sorted.
func namespaces(objects []*object) []string {
	found := map[string]bool{}
	for _, o := range objects {
		if o.scope == cluster.Namespaced && o.GetNamespace() != "" {
			found[o.GetNamespace()] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// isSecret reports whether an object is a Secret with content.
func (o *object) isSecret() bool {
	if !engineobject.IsSecret(o.GroupVersionKind().GroupKind()) {
		return false
	}
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	text, _, _ := unstructured.NestedMap(o.Object, "stringData")
	return len(data)+len(text) > 0
}

// A RefusedError says why objects are not imported.
type RefusedError struct{ Reasons []string }

// Error lists the reasons, one a line.
func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "\n") }
