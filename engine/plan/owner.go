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
	// known is how the UIDs begin of what the owner has written.
	known map[cluster.Ref]string
}

// Knowing returns the owner with what its inventory says that it has written: an object
// that has lost all marks is known by its UID.
func (o Owner) Knowing(inv Inventory) Owner {
	o.known = map[cluster.Ref]string{}
	for _, g := range inv {
		for _, e := range g.Objects {
			if e.UID != "" {
				o.known[e.Ref(o.Namespace).Identity()] = e.UID
			}
		}
	}
	return o
}

// wrote reports whether exactly this object is known to be the owner's.
func (o Owner) wrote(live *unstructured.Unstructured) bool {
	uid, known := o.known[cluster.RefOf(live).Identity()]
	return known && uid == uidOf(live)
}

// uidLength is how much of a UID an inventory keeps: enough to tell an object from
// another one of its name, and little enough for a thousand of them.
const uidLength = 8

// uidOf returns how an object's UID begins.
func uidOf(live *unstructured.Unstructured) string {
	uid := string(live.GetUID())
	return uid[:min(len(uid), uidLength)]
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

// belongs judges ownership alone. A controller reference decides; without one, the
// owner's marks do. Where somebody has taken those away, as kubectl replace does, the
// object is known by its UID: it would otherwise be nobody's, and be left behind.
func belongs(live *unstructured.Unstructured, owner Owner) (Situation, string) {
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
	mark, label := live.GetAnnotations()[OwnerMark], live.GetLabels()[OwnerMark]
	switch {
	case mark == owner.String():
		return Owned, ""
	case mark != "":
		return Foreign, mark
	case label == owner.Label():
		return Owned, ""
	case label == "" && owner.wrote(live):
		return Owned, ""
	}
	return Foreign, managers(live)
}

// Unreferred reports whether an object that should refer to its owner does not.
func Unreferred(live *unstructured.Unstructured, owner Owner) bool {
	referred := slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.UID })
	return !referred && !outside(live.GetNamespace(), owner)
}

// Released reports whether an object of a deleted owner was released from it: its
// reference to the owner was taken away, most likely by the garbage collector, which
// does so for kubectl delete --cascade=orphan and leaves no other trace of it. Whoever
// takes more away than that means something else.
func Released(live *unstructured.Unstructured, owner Owner) bool {
	return Unreferred(live, owner) && live.GetAnnotations()[OwnerMark] == owner.String()
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
