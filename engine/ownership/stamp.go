package ownership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
)

// A Desired is an object as it is applied.
type Desired struct {
	Component string
	Object    string
	Manifest  *unstructured.Unstructured
	// Digest is the digest of the manifest, and the value of its AppliedAnnotation.
	Digest string
	// Key is what its digests are made with, and Content what Content returns of it.
	Key, Content string
	Policy       program.Policy
	// Position is where the package renders it.
	Position fault.Position
}

// Ref returns the object's identity.
func (d Desired) Ref() cluster.Ref { return cluster.RefOf(d.Manifest) }

// StampOptions say where an object is and may be, and what its marks tell.
type StampOptions struct {
	Scope cluster.Scope
	Reach program.Reach
	// After are the components that the object's own depends on.
	After []string
	// Key is the key of the object's digests: the salt of a Secret, which becomes its annotation,
	// and "" for an object that contains nothing of a Secret.
	Key string
}

// Stamp returns a rendered object with the engine's marks: namespace, owner
// label and annotations, the controller reference where one is allowed, and the
// digest. It errors when the manifest cannot be an object of that owner.
func Stamp(owner Owner, component string, o program.Object, at StampOptions) (Desired, error) {
	d := Desired{Component: component, Object: o.Name, Policy: o.Policy, Position: o.Position}
	u := &unstructured.Unstructured{Object: maps.Clone(o.Manifest)} // only what is stamped is copied
	u.Object["metadata"] = runtime.DeepCopyJSONValue(u.Object["metadata"])
	u.SetNamespace(RefOf(o, owner.Namespace, at.Scope).Namespace)
	if err := CheckReach(at.Reach, owner, cluster.RefOf(u)); err != nil {
		return d, fmt.Errorf("object %s: %w", o.Name, err)
	}
	if problem := wrongName(component); problem != "" {
		return d, fmt.Errorf("object %s: the name of its component %s", o.Name, problem)
	}
	if err := EntryOf(o, owner.Namespace, at.Scope).Check(); err != nil {
		return d, fmt.Errorf("object %s: its %w", o.Name, err)
	}
	FoldStringData(u)
	Mark(u, owner)
	annotate(u, ComponentAnnotation, component+"/"+o.Name)
	if len(at.After) > 0 {
		annotate(u, AfterAnnotation, strings.Join(at.After, ","))
	}
	if o.Policy.Adopt {
		annotate(u, AdoptAnnotation, adopts)
	}
	switch {
	case o.Policy.Delete == orphan:
		annotate(u, DeleteAnnotation, orphan) // no owner reference: garbage collection would delete it
	case !outside(u.GetNamespace(), owner):
		u.SetOwnerReferences([]metav1.OwnerReference{reference(owner)})
	}
	if object.MayBeSecret(u.GetKind()) && at.Key != "" {
		annotate(u, SaltAnnotation, at.Key)
	}
	digest, err := program.Digest(at.Key, u.Object)
	if err != nil {
		return d, fmt.Errorf("object %s: %w", o.Name, err)
	}
	annotate(u, AppliedAnnotation, digest)
	d.Manifest, d.Digest, d.Key, d.Content = u, digest, at.Key, Content(u.GroupVersionKind().GroupKind(), u.Object, at.Key)
	return d, nil
}

// outside reports whether garbage collection does not reach an object: a namespaced owner cannot be
// the owner of objects outside of its namespace.
func outside(namespace string, owner Owner) bool {
	return owner.Namespace != "" && namespace != owner.Namespace
}

// CheckReach errors with a *program.OutOfReachError if a package does not reach an object. Without that
// check, any user who can write a resource in one namespace could write objects beyond their own
// permissions. The namespace of ref is empty if and only if the object is cluster-scoped.
func CheckReach(reach program.Reach, owner Owner, ref cluster.Ref) error {
	return reach.MayOwn(owner.Namespace, ref.GroupVersionKind.GroupKind(), ref.Namespace)
}

// Mark writes the owner's label and annotations on an object.
func Mark(u *unstructured.Unstructured, owner Owner) {
	label(u, owner.Label())
	annotate(u, OwnerAnnotation, owner.String())
	annotate(u, OwnerUIDAnnotation, string(owner.UID))
}

// CopyMarks copies the engine's marks and the owner reference of a desired object to the live one, and
// leaves everything else as it is.
func CopyMarks(live *unstructured.Unstructured, want Desired) {
	label(live, want.Manifest.GetLabels()[OwnerLabel])
	for _, mark := range []string{OwnerAnnotation, OwnerUIDAnnotation, ComponentAnnotation, AfterAnnotation, DeleteAnnotation, AdoptAnnotation, SaltAnnotation} {
		if value := want.Manifest.GetAnnotations()[mark]; value != "" {
			annotate(live, mark, value)
		}
	}
	refs := live.GetOwnerReferences()
	for _, ref := range want.Manifest.GetOwnerReferences() {
		if !slices.ContainsFunc(refs, func(has metav1.OwnerReference) bool { return has.UID == ref.UID }) {
			refs = append(refs, ref)
		}
	}
	live.SetOwnerReferences(refs)
}

// label sets the owner label of an object that no other caller has.
func label(u *unstructured.Unstructured, value string) {
	if labels := textsIn(u, "labels"); labels != nil {
		labels[OwnerLabel] = value
		return
	}
	u.SetLabels(with(u.GetLabels(), OwnerLabel, value))
}

// annotate sets an annotation of an object that no other caller has.
func annotate(u *unstructured.Unstructured, key, value string) {
	if annotations := textsIn(u, "annotations"); annotations != nil {
		annotations[key] = value
		return
	}
	u.SetAnnotations(with(u.GetAnnotations(), key, value))
}

// textsIn returns a field of the metadata of an object as it is there, and not a copy as its accessor does: an
// object has a mark after the other set. It returns nil unless all values are texts.
func textsIn(u *unstructured.Unstructured, field string) map[string]any {
	meta, _ := u.Object["metadata"].(map[string]any)
	texts, _ := meta[field].(map[string]any)
	for _, v := range texts {
		if _, ok := v.(string); !ok {
			return nil
		}
	}
	return texts
}

func with(texts map[string]string, key, value string) map[string]string {
	if texts == nil {
		texts = map[string]string{}
	}
	texts[key] = value
	return texts
}

func reference(owner Owner) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         owner.GroupVersion().String(),
		Kind:               owner.Kind,
		Name:               owner.Name,
		UID:                owner.UID,
		Controller:         new(true),
		BlockOwnerDeletion: new(true),
	}
}
