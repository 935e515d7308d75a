package ownership

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
)

// An Inventory lists every object that a custom resource has written or is about to write, and the
// order between its components. The status of the resource stores it. It grows before the
// first write and shrinks after an object is confirmed to be absent, so deletion needs nothing
// else: no package, no evaluation.
//
// Values are treated as immutable: methods return new ones.
type Inventory []Group

// A Group is one component's part of an inventory.
type Group struct {
	// Component is the component's name.
	Component string `json:"component"`
	// DependsOn are the components that are deleted after this one.
	DependsOn []string `json:"dependsOn,omitempty"`
	// Objects are the objects, in the author's order.
	Objects []Entry `json:"objects,omitempty"`
}

// An Entry is one object of an inventory.
type Entry struct {
	// Object is the object's name within its component.
	Object     string `json:"object"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is left out when it is the owner's, and when there is none.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// ClusterScoped says that the object has no namespace.
	ClusterScoped bool `json:"clusterScoped,omitempty"`
	// Digest is the digest of the manifest that was last applied; it is empty before. While a
	// gate is closed, drift is repaired only towards that manifest.
	Digest string `json:"digest,omitempty"`
	// UID is the beginning of the UID of the object that was last seen to be the owner's.
	UID string `json:"uid,omitempty"`
	// Orphan says that the object is left behind instead of being deleted.
	Orphan bool `json:"orphan,omitempty"`
	// Content is the digest of the applied manifest without its metadata, for kinds that finish.
	Content string `json:"content,omitempty"`
	// Ended is how the object with that content finished.
	Ended FinishState `json:"ended,omitempty"`
	// Last is its last status in short, as JSON.
	Last string `json:"last,omitempty"`
}

// Ref returns the identity of an entry, given its owner's namespace.
func (e Entry) Ref(ownerNamespace string) cluster.Ref {
	ns := e.Namespace
	if ns == "" && !e.ClusterScoped {
		ns = ownerNamespace
	}
	return cluster.Ref{GroupVersionKind: schema.FromAPIVersionAndKind(e.APIVersion, e.Kind), Namespace: ns, Name: e.Name}
}

// RefOf returns the identity of an object that a package renders, in the namespace
// of its owner unless it says otherwise or has none.
func RefOf(o program.Object, ownerNamespace string, scope cluster.Scope) cluster.Ref {
	ref := o.Identity
	switch {
	case scope == cluster.ClusterScoped:
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = ownerNamespace
	}
	return ref
}

// EntryOf returns the entry of an object that is to be applied.
func EntryOf(o program.Object, ownerNamespace string, scope cluster.Scope) Entry {
	e := newEntry(o.Name, RefOf(o, ownerNamespace, scope), ownerNamespace)
	e.Orphan = o.Policy.Delete == orphan
	return e
}

// newEntry returns an entry without what is known of the object itself.
func newEntry(object string, ref cluster.Ref, ownerNamespace string) Entry {
	e := Entry{Object: object, APIVersion: ref.GroupVersion().String(), Kind: ref.Kind, Name: ref.Name}
	switch ref.Namespace {
	case ownerNamespace:
	case "":
		e.ClusterScoped = true
	default:
		e.Namespace = ref.Namespace
	}
	return e
}

// Encode returns an inventory as JSON values. An empty inventory is an empty list: a missing one
// means that the status was lost.
func (inv Inventory) Encode() []any {
	out := []any{}
	b, err := json.Marshal(inv)
	if err != nil || len(inv) == 0 {
		return out // plain strings always encode
	}
	_ = json.Unmarshal(b, &out)
	return out
}

// Size returns the bytes that an inventory takes in a status at most, once all its objects have
// digests and UIDs.
func (inv Inventory) Size() int {
	b, err := json.Marshal(inv)
	if err != nil {
		return 0 // plain strings always encode
	}
	const digestAndUID = len(`"digest":"","content":"","uid":"",`) + 3*32
	return len(b) + inv.Len()*digestAndUID
}

// Equal reports whether two inventories are the same, also in order.
func (inv Inventory) Equal(other Inventory) bool {
	return slices.EqualFunc(inv, other, func(a, b Group) bool {
		return a.Component == b.Component && slices.Equal(a.DependsOn, b.DependsOn) && slices.Equal(a.Objects, b.Objects)
	})
}

// Len returns the number of objects.
func (inv Inventory) Len() int {
	n := 0
	for _, g := range inv {
		n += len(g.Objects)
	}
	return n
}

// Find returns the entry of an object by its identity, and its component.
func (inv Inventory) Find(ref cluster.Ref, ownerNamespace string) (Entry, string, bool) {
	for _, g := range inv {
		for _, e := range g.Objects {
			if e.Ref(ownerNamespace).Identity() == ref.Identity() {
				return e, g.Component, true
			}
		}
	}
	return Entry{}, "", false
}

// With returns the inventory with the edges and objects of a component. Objects that are there
// already keep their place and digest. Objects that the component no longer renders stay until
// Without removes them. An object of another component moves over.
func (inv Inventory) With(component string, dependsOn []string, entries []Entry) Inventory {
	out := slices.Clone(inv)
	entries = slices.Clone(entries)
	for i := range entries {
		out = out.withdrawn(component, &entries[i])
	}
	i := slices.IndexFunc(out, func(g Group) bool { return g.Component == component })
	if i < 0 {
		if len(entries) == 0 {
			return inv
		}
		return append(out, Group{Component: component, DependsOn: dependsOn, Objects: entries})
	}
	g := out[i]
	g.DependsOn = dependsOn
	g.Objects = slices.Clone(g.Objects)
	for _, e := range entries {
		j := slices.IndexFunc(g.Objects, func(have Entry) bool { return have.sameObject(e) })
		if j >= 0 {
			e.Digest = g.Objects[j].Digest
			g.Objects[j] = e.knowing(g.Objects[j])
		} else {
			g.Objects = append(g.Objects, e)
		}
	}
	out[i] = g
	return out
}

// withdrawn returns the inventory without an object in all components but one. It copies what
// those knew of the object into its new entry.
func (inv Inventory) withdrawn(except string, entry *Entry) Inventory {
	out := inv
	for _, g := range inv {
		if g.Component == except {
			continue
		}
		if i := slices.IndexFunc(g.Objects, entry.sameObject); i >= 0 {
			*entry = entry.knowing(g.Objects[i])
			out = out.Without(g.Component, *entry)
		}
	}
	return out
}

// knowing returns an entry with what another one knows of the object itself, whichever component
// renders it.
func (e Entry) knowing(known Entry) Entry {
	e.UID, e.Content, e.Ended, e.Last = known.UID, known.Content, known.Ended, known.Last
	return e
}

// edited returns the inventory with a change of the entries of a component, or of all for "". It
// copies only what changes: a rollout edits the inventory once for each object.
func (inv Inventory) edited(component string, edit func(e *Entry)) Inventory {
	out := slices.Clone(inv)
	var e Entry
	for i, g := range inv {
		if component != "" && g.Component != component {
			continue
		}
		copied := false
		for j := range g.Objects {
			e = g.Objects[j]
			if edit(&e); e == g.Objects[j] {
				continue
			}
			if !copied {
				out[i].Objects, copied = slices.Clone(g.Objects), true
			}
			out[i].Objects[j] = e
		}
	}
	return out
}

// Applied returns the inventory with the digest of an object that was applied.
func (inv Inventory) Applied(d Desired, ownerNamespace string) Inventory {
	ref := d.Ref().Identity()
	return inv.edited(d.Component, func(e *Entry) {
		if e.Ref(ownerNamespace).Identity() == ref {
			e.Digest, e.Content = d.Digest, d.Content
		}
	})
}

// Seen returns the inventory with the UIDs of objects that are the owner's.
func (inv Inventory) Seen(ownerNamespace string, objects ...*unstructured.Unstructured) Inventory {
	uids := map[cluster.Ref]string{}
	for _, u := range objects {
		uids[cluster.RefOf(u).Identity()] = uidOf(u)
	}
	return inv.edited("", func(e *Entry) {
		if uid, seen := uids[e.Ref(ownerNamespace).Identity()]; seen {
			e.UID = uid
		}
	})
}

// Orphaned returns the inventory with every object to be left behind.
func (inv Inventory) Orphaned() Inventory {
	return inv.edited("", func(e *Entry) { e.Orphan = true })
}

// Without returns the inventory without one object. A component without objects leaves the
// inventory too; its dependents then depend on its dependencies.
func (inv Inventory) Without(component string, entry Entry) Inventory {
	var out Inventory
	for i, g := range inv {
		if g.Component != component {
			out = append(out, g)
			continue
		}
		g.Objects = slices.DeleteFunc(slices.Clone(g.Objects), func(e Entry) bool { return e.sameObject(entry) })
		if len(g.Objects) == 0 {
			return slices.Concat(inv[:i], inv[i+1:]).withoutComponent(g)
		}
		out = append(out, g)
	}
	return out
}

// Keeping returns the inventory with only some of its objects, as if Without removed the others.
func (inv Inventory) Keeping(keep func(component string, e Entry) bool) Inventory {
	out := slices.Clone(inv)
	var left Inventory
	for i, g := range inv {
		kept := slices.DeleteFunc(slices.Clone(g.Objects), func(e Entry) bool { return !keep(g.Component, e) })
		if len(kept) == 0 && len(g.Objects) > 0 {
			kept = g.Objects[:1] // Without removes it below, and links the dependents
			left = append(left, Group{Component: g.Component, Objects: kept})
		}
		out[i].Objects = kept
	}
	for _, g := range left {
		out = out.Without(g.Component, g.Objects[0])
	}
	return out
}

// sameObject compares identities, without the version of the API.
func (e Entry) sameObject(other Entry) bool {
	return e.Ref("").Identity() == other.Ref("").Identity()
}

// NeedsTeardown reports whether garbage collection is not enough: the objects have an order of
// deletion, or are in another namespace or cluster-scoped.
func (inv Inventory) NeedsTeardown() bool {
	return slices.ContainsFunc(inv, func(g Group) bool {
		return len(g.DependsOn) > 0 || slices.ContainsFunc(g.Objects, func(e Entry) bool { return e.Namespace != "" || e.ClusterScoped })
	})
}
