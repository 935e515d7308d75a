package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
)

// The marks that the engine leaves on what it writes.
const (
	// OwnerMark is the label and the annotation that say which custom resource an
	// object belongs to: the label as a digest, since names may be longer than a
	// label's value, the annotation for people.
	OwnerMark = "operetta.dev/owner"
	// ComponentMark is the annotation that says which component and object of the
	// package it is, as component/object.
	ComponentMark = "operetta.dev/component"
	// AfterMark is the annotation that names the components that are deleted after
	// the object's own, so that an inventory can be rebuilt from objects.
	AfterMark = "operetta.dev/after"
	// DeleteMark is the annotation of an object that is left behind when it is no
	// longer wanted. Its value is that of the policy.
	DeleteMark = "operetta.dev/delete"
	// AdoptMark is the annotation of an object whose owner would take it from
	// anybody: see Claim.
	AdoptMark = "operetta.dev/adopt"
	// AppliedMark is the annotation with the digest of the manifest that was last applied.
	AppliedMark = "operetta.dev/applied"
)

// orphan is the policy that leaves an object behind.
const orphan = "orphan"

// adopts is the value of an AdoptMark.
const adopts = "true"

// An Owner is the custom resource that objects belong to.
type Owner struct {
	schema.GroupVersionKind
	Namespace string
	Name      string
	UID       types.UID
}

// String returns the owner as a person writes it: App.example.com default/shop.
func (o Owner) String() string {
	kind := o.Kind + "." + o.Group
	if o.Namespace == "" {
		return kind + " " + o.Name
	}
	return kind + " " + o.Namespace + "/" + o.Name
}

// Label returns the value of the owner label.
func (o Owner) Label() string {
	sum := sha256.Sum256([]byte(o.String()))
	return hex.EncodeToString(sum[:16])
}

// ParseOwner returns the kind and name in an owner annotation.
func ParseOwner(mark string) (kind schema.GroupKind, key types.NamespacedName, ok bool) {
	kindText, name, ok := strings.Cut(mark, " ")
	if !ok {
		return kind, key, false
	}
	if ns, n, namespaced := strings.Cut(name, "/"); namespaced {
		key = types.NamespacedName{Namespace: ns, Name: n}
	} else {
		key.Name = name
	}
	return schema.ParseGroupKind(kindText), key, true
}

// A Situation is what is found where an object should be.
type Situation string

// The situations.
const (
	// Absent: nothing is there.
	Absent Situation = "Absent"
	// Owned: the object belongs to this custom resource.
	Owned Situation = "Owned"
	// Predecessor: it belongs to a deleted custom resource of the same name, and
	// garbage collection is about to take it.
	Predecessor Situation = "Predecessor"
	// Terminating: it is being deleted.
	Terminating Situation = "Terminating"
	// Foreign: it belongs to somebody else, or to nobody that is known.
	Foreign Situation = "Foreign"
)

// Situate returns the situation of a live object, and for a foreign one whom it
// belongs to.
func Situate(live *unstructured.Unstructured, owner Owner) (Situation, string) {
	if live == nil {
		return Absent, ""
	}
	mine, whose := belongs(live, owner)
	switch {
	case mine == Owned && live.GetDeletionTimestamp() != nil:
		return Terminating, ""
	default:
		return mine, whose
	}
}

// belongs judges ownership alone. A controller reference decides; without one,
// the owner annotation does.
func belongs(live *unstructured.Unstructured, owner Owner) (Situation, string) {
	mark := live.GetAnnotations()[OwnerMark]
	for _, ref := range live.GetOwnerReferences() {
		if ref.Controller == nil || !*ref.Controller {
			continue
		}
		sameName := ref.Kind == owner.Kind && ref.Name == owner.Name && strings.HasPrefix(ref.APIVersion, owner.Group+"/")
		switch {
		case ref.UID == owner.UID:
			return Owned, ""
		case sameName:
			return Predecessor, ""
		default:
			return Foreign, ref.Kind + " " + ref.Name
		}
	}
	switch mark {
	case owner.String():
		return Owned, ""
	case "":
		return Foreign, managers(live)
	default:
		return Foreign, mark
	}
}

// Released reports whether an object of a deleted owner was released from it: its
// reference to the owner was taken away, most likely by the garbage collector, which
// does so for kubectl delete --cascade=orphan and leaves no other trace of it.
func Released(live *unstructured.Unstructured, owner Owner) bool {
	referred := slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.UID })
	return !referred && !outside(live.GetNamespace(), owner)
}

// managers names who wrote an object that has no owner.
func managers(live *unstructured.Unstructured) string {
	var names []string
	for _, m := range live.GetManagedFields() {
		if m.Manager != cluster.FieldManager && !slices.Contains(names, m.Manager) {
			names = append(names, m.Manager)
		}
	}
	if len(names) == 0 {
		return "an unknown manager"
	}
	slices.Sort(names)
	return "manager " + strings.Join(names, ", ")
}
