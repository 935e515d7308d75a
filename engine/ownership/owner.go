package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
)

// The marks that the engine leaves on what it writes.
const (
	// OwnerLabel has a digest of the name of the custom resource that owns an object, because the
	// name may be too long for a label; OwnerAnnotation has the name.
	OwnerLabel      = "operetta.dev/owner"
	OwnerAnnotation = OwnerLabel
	// OwnerUIDAnnotation has the UID of that custom resource. Only a user who may read the resource or one
	// of its objects knows the UID. Any user who knows names can write the other marks.
	OwnerUIDAnnotation = "operetta.dev/owner-uid"
	// ComponentAnnotation says which component and object of the package it
	// is, as component/object.
	ComponentAnnotation = "operetta.dev/component"
	// AfterAnnotation names the components that are deleted after the object's own, so that an inventory can be rebuilt from objects.
	AfterAnnotation = "operetta.dev/after"
	// DeleteAnnotation is on an object that is left behind when it is no longer wanted. Its value is that of the policy.
	DeleteAnnotation = "operetta.dev/delete"
	// AdoptAnnotation is on an object whose owner would take it from any other owner: see Claim.
	AdoptAnnotation = "operetta.dev/adopt"
	// AppliedAnnotation has the digest of the manifest that was last applied.
	AppliedAnnotation = "operetta.dev/applied"
)

// orphan is the policy that leaves an object behind.
const orphan = "orphan"

// adopts is the value of the AdoptAnnotation.
const adopts = "true"

// An Owner is the custom resource that objects belong to.
type Owner struct {
	cluster.Ref
	UID types.UID
	// Reach is where its objects may be besides its namespace; nil is not known, as of a
	// resource without its package.
	Reach *program.Reach
	// known are the beginnings of the UIDs of the objects in the inventory.
	known map[cluster.Ref]string
}

// WithInventory returns the owner with what its inventory says that it has written. Anybody who may
// write the status can forge the inventory, so it proves nothing by itself: it only confirms the
// marks of an object.
func (o Owner) WithInventory(inv Inventory) Owner {
	o.known = map[cluster.Ref]string{}
	for _, e := range inv.Entries() {
		if e.UIDPrefix != "" {
			o.known[e.Ref(o.Namespace).Identity()] = e.UIDPrefix
		}
	}
	return o
}

// wrote reports whether the inventory says that the owner has written exactly this object.
func (o Owner) wrote(live *unstructured.Unstructured) bool {
	uid, known := o.known[cluster.RefOf(live).Identity()]
	return known && uid == uidOf(live)
}

// Reaches reports whether the owner may have an object at a place: in its own namespace, and
// elsewhere as far as its package reaches. Without a known reach, nowhere else.
func (o Owner) Reaches(ref cluster.Ref) bool {
	reach := program.Reach{}
	if o.Reach != nil {
		reach = *o.Reach
	}
	return CheckReach(reach, o, ref) == nil
}

// SearchNamespace returns the namespace to search for objects of the owner, or "" for all namespaces.
func (o Owner) SearchNamespace() string {
	if o.Reach == nil || o.Reach.OwnsBeyondNamespace() {
		return ""
	}
	return o.Namespace
}

// uidLength is how much of a UID an inventory keeps: enough to tell an object from another one of
// the same name, and short enough for a thousand objects.
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

// A Situation says what exists where an object should be.
type Situation string

// The situations.
const (
	// Absent: nothing is there.
	Absent Situation = "Absent"
	// Owned: the object belongs to this custom resource.
	Owned Situation = "Owned"
	// Predecessor: it belongs to a deleted custom resource of the same name, and garbage
	// collection is about to delete it.
	Predecessor Situation = "Predecessor"
	// Terminating: it is being deleted.
	Terminating Situation = "Terminating"
	// Foreign: it belongs to another owner, or its owner is unknown.
	Foreign Situation = "Foreign"
	// Unproven: a name or the inventory says that it belongs to this custom resource, and nothing
	// on the object proves it. The engine may write it, which restores its marks, and never
	// deletes it.
	Unproven Situation = "Unproven"
	// OutOfReach: the owner may not have objects there, whatever its marks say.
	OutOfReach Situation = "OutOfReach"
)

// Classify returns the situation of a live object, and for a foreign one whom it
// belongs to.
func Classify(live *unstructured.Unstructured, owner Owner) (Situation, string) {
	switch {
	case live == nil:
		return Absent, ""
	case owner.Reaches(cluster.RefOf(live)):
	case owner.Reach == nil && boundBy(live, owner):
		// The package that says how far it reaches is not known.
	default:
		return OutOfReach, ""
	}
	mine, whose := ClassifyOwnership(live, owner)
	switch {
	case mine == Owned && live.GetDeletionTimestamp() != nil:
		return Terminating, ""
	default:
		return mine, whose
	}
}

// ClassifyOwnership decides ownership only: Owned, Predecessor, Foreign or Unproven, wherever the object is, and for a foreign one
// whom it belongs to. A controller reference decides where the garbage collector follows
// it; otherwise marks do. The UID of the owner is proof. Its name is not: everybody knows the
// name, and it outlives the owner. Older versions of the engine left no UID, so their marks and the
// inventory have to confirm each other.
//
// If a client removed all marks, as kubectl replace does, the inventory together with the
// fields that the engine has written show what the object was.
func ClassifyOwnership(live *unstructured.Unstructured, owner Owner) (Situation, string) {
	if situation, whose := controlled(live, owner); situation != Absent {
		return situation, whose
	}
	mark, label := live.GetAnnotations()[OwnerAnnotation], live.GetLabels()[OwnerLabel]
	named := mark == owner.String() || label == owner.Label()
	switch {
	case mark != "" && mark != owner.String():
		return Foreign, mark
	case mark == "" && label != "" && label != owner.Label():
		return Foreign, managers(live)
	case boundBy(live, owner) || refers(live, owner):
		return Owned, ""
	case named && live.GetAnnotations()[OwnerUIDAnnotation] == "" && owner.wrote(live):
		return Owned, ""
	case named || owner.wrote(live) && writtenByEngine(live):
		return Unproven, ""
	}
	return Foreign, managers(live)
}

// controlled decides by the controller reference. It returns Absent if that decides nothing.
func controlled(live *unstructured.Unstructured, owner Owner) (Situation, string) {
	far := outside(live.GetNamespace(), owner)
	for _, ref := range live.GetOwnerReferences() {
		if ref.Controller == nil || !*ref.Controller {
			continue
		}
		sameName := ref.Kind == owner.Kind && ref.Name == owner.Name && strings.HasPrefix(ref.APIVersion, owner.Group+"/")
		switch {
		case ref.UID == owner.UID && far:
			return Absent, "" // garbage collection follows references only within a namespace
		case ref.UID == owner.UID:
			return Owned, ""
		case sameName && !far:
			return Predecessor, ""
		default:
			return Foreign, ref.Kind + " " + ref.Name
		}
	}
	return Absent, ""
}

// boundBy reports whether the marks of an object have the UID of the owner.
func boundBy(live *unstructured.Unstructured, owner Owner) bool {
	return owner.UID != "" && live.GetAnnotations()[OwnerUIDAnnotation] == string(owner.UID)
}

// refers reports whether an object has an owner reference to its owner, as controller or not.
func refers(live *unstructured.Unstructured, owner Owner) bool {
	return !outside(live.GetNamespace(), owner) && slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.UID })
}

// writtenByEngine reports whether an object still has a field that the engine wrote. Metadata does not
// count: the engine also writes finalizers of resources that people own.
func writtenByEngine(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(ManagedFields(live), func(m metav1.ManagedFieldsEntry) bool {
		if m.Manager != cluster.FieldManager || m.Subresource != "" || m.FieldsV1 == nil {
			return false
		}
		fields := map[string]json.RawMessage{}
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			return false
		}
		delete(fields, "f:metadata")
		return len(fields) > 0
	})
}

// LacksOwnerReference reports whether an object that should refer to its owner does not.
func LacksOwnerReference(live *unstructured.Unstructured, owner Owner) bool {
	return !refers(live, owner) && !outside(live.GetNamespace(), owner)
}

// Released reports whether an object lost only its reference to the deleted owner. The garbage
// collector removes it for kubectl delete --cascade=orphan, and leaves no other trace of that.
// An object that lost its marks as well was changed by a client for another reason.
func Released(live *unstructured.Unstructured, owner Owner) bool {
	return LacksOwnerReference(live, owner) && live.GetAnnotations()[OwnerAnnotation] == owner.String()
}

// managers names the field managers of an object without owner.
func managers(live *unstructured.Unstructured) string {
	var names []string
	for _, m := range ManagedFields(live) {
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
