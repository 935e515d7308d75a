package ownership

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
)

// An Inventory is every object that a custom resource has written or is about to
// write, and the order between its components. It is kept in the resource's
// status. It grows before the first write and shrinks after an object's absence
// was confirmed, so that deletion needs nothing else: no package, no evaluation.
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
	// Digest is that of the manifest that was last applied; it is empty before.
	// While a gate is closed, an object is repaired only towards that manifest.
	Digest string `json:"digest,omitempty"`
	// UID is how the UID of the object begins that was last seen to be the owner's.
	UID string `json:"uid,omitempty"`
	// Orphan says that the object is left behind instead of being deleted.
	Orphan bool `json:"orphan,omitempty"`
	// Content is the digest of what the object was last applied with but for its
	// metadata, if it is of a kind that ends.
	Content string `json:"content,omitempty"`
	// Ended is how the object of that content has ended, if it has: see FinishState.
	Ended FinishState `json:"ended,omitempty"`
	// Last is what its status said then, in short, as JSON.
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
	ref := RefOf(o, ownerNamespace, scope)
	e := Entry{
		Object:     o.Name,
		APIVersion: ref.GroupVersion().String(),
		Kind:       ref.Kind,
		Name:       ref.Name,
		Orphan:     o.Policy.Delete == orphan,
	}
	switch ref.Namespace {
	case ownerNamespace:
	case "":
		e.ClusterScoped = true
	default:
		e.Namespace = ref.Namespace
	}
	return e
}

// Encode returns an inventory as JSON values: a list, also when it is empty. One that
// is missing was lost.
func (inv Inventory) Encode() []any {
	out := []any{}
	b, err := json.Marshal(inv)
	if err != nil || len(inv) == 0 {
		return out // plain strings always encode
	}
	_ = json.Unmarshal(b, &out)
	return out
}

// Size returns how many bytes an inventory takes in a status at most, once all its
// objects were applied and seen.
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

// With returns the inventory with a component's edges and objects in it. Objects
// that it already holds keep their place and digest; those that the component no
// longer renders stay until they are Without. An object that another component
// had moves over.
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

// withdrawn returns the inventory without an object in all components but one. The
// object's new entry is told what those knew of it.
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

// knowing returns an entry with what another one knows of the object itself, whoever
// renders it.
func (e Entry) knowing(known Entry) Entry {
	e.UID, e.Content, e.Ended, e.Last = known.UID, known.Content, known.Ended, known.Last
	return e
}

// Applied returns the inventory with the digest of an object that was applied.
func (inv Inventory) Applied(d Desired, ownerNamespace string) Inventory {
	out := slices.Clone(inv)
	for i, g := range out {
		if g.Component != d.Component {
			continue
		}
		g.Objects = slices.Clone(g.Objects)
		for j, e := range g.Objects {
			if e.Ref(ownerNamespace).Identity() == d.Ref().Identity() {
				g.Objects[j].Digest, g.Objects[j].Content = d.Digest, d.Content
			}
		}
		out[i] = g
	}
	return out
}

// Seen returns the inventory with the UIDs of objects that are the owner's.
func (inv Inventory) Seen(ownerNamespace string, objects ...*unstructured.Unstructured) Inventory {
	uids := map[cluster.Ref]string{}
	for _, u := range objects {
		uids[cluster.RefOf(u).Identity()] = uidOf(u)
	}
	out := slices.Clone(inv)
	for i, g := range out {
		g.Objects = slices.Clone(g.Objects)
		for j, e := range g.Objects {
			if uid, seen := uids[e.Ref(ownerNamespace).Identity()]; seen {
				g.Objects[j].UID = uid
			}
		}
		out[i] = g
	}
	return out
}

// Without returns the inventory without one object; a component without objects
// leaves it, and what was deleted before it is now deleted before what comes after it.
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

// Keeping returns the inventory with some of its objects alone, as Without each of the
// others.
func (inv Inventory) Keeping(keep func(component string, e Entry) bool) Inventory {
	out := slices.Clone(inv)
	var left Inventory
	for i, g := range inv {
		kept := slices.DeleteFunc(slices.Clone(g.Objects), func(e Entry) bool { return !keep(g.Component, e) })
		if len(kept) == 0 && len(g.Objects) > 0 {
			kept = g.Objects[:1] // what follows from the group's end is for Without
			left = append(left, Group{Component: g.Component, Objects: kept})
		}
		out[i].Objects = kept
	}
	for _, g := range left {
		out = out.Without(g.Component, g.Objects[0])
	}
	return out
}

// Orphaned returns the inventory with every object to be left behind.
func (inv Inventory) Orphaned() Inventory {
	out := slices.Clone(inv)
	for i, g := range out {
		g.Objects = slices.Clone(g.Objects)
		for j := range g.Objects {
			g.Objects[j].Orphan = true
		}
		out[i] = g
	}
	return out
}

// sameObject compares identities, without the version of the API.
func (e Entry) sameObject(other Entry) bool {
	a, b := e.Ref(""), other.Ref("")
	return a.Identity() == b.Identity()
}

// NeedsTeardown reports whether garbage collection would not do: the objects have
// to be deleted in an order, or are where it does not reach.
func (inv Inventory) NeedsTeardown() bool {
	return slices.ContainsFunc(inv, func(g Group) bool {
		return len(g.DependsOn) > 0 || slices.ContainsFunc(g.Objects, func(e Entry) bool { return e.Namespace != "" || e.ClusterScoped })
	})
}
