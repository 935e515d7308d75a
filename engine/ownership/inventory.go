package ownership

import (
	"encoding/json"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
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
	// UIDPrefix is the beginning of the UID of the object that was last seen to be the owner's.
	UIDPrefix string `json:"uid,omitempty"`
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
	out := make([]any, len(inv))
	for i, g := range inv {
		group := map[string]any{"component": g.Component}
		if len(g.DependsOn) > 0 {
			group["dependsOn"] = object.Texts(g.DependsOn)
		}
		if len(g.Objects) > 0 {
			objects := make([]any, len(g.Objects))
			for j, e := range g.Objects {
				objects[j] = e.encode()
			}
			group["objects"] = objects
		}
		out[i] = group
	}
	return out
}

// encode returns an entry as JSON values, as its tags say.
func (e Entry) encode() map[string]any {
	out := make(map[string]any, 8)
	out["object"], out["apiVersion"], out["kind"], out["name"] = e.Object, e.APIVersion, e.Kind, e.Name
	for _, f := range []struct{ name, value string }{
		{"namespace", e.Namespace}, {"digest", e.Digest}, {"uid", e.UIDPrefix}, {"content", e.Content}, {"ended", string(e.Ended)}, {"last", e.Last},
	} {
		if f.value != "" {
			out[f.name] = f.value
		}
	}
	if e.ClusterScoped {
		out["clusterScoped"] = true
	}
	if e.Orphan {
		out["orphan"] = true
	}
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

// Entries returns the entries of all components, in order, each with its component.
func (inv Inventory) Entries() iter.Seq2[string, Entry] {
	return func(yield func(component string, e Entry) bool) {
		for _, g := range inv {
			for _, e := range g.Objects {
				if !yield(g.Component, e) {
					return
				}
			}
		}
	}
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
	for component, e := range inv.Entries() {
		if e.Ref(ownerNamespace).Identity() == ref.Identity() {
			return e, component, true
		}
	}
	return Entry{}, "", false
}

// With returns the inventory with the edges and objects of a component. Objects that are there
// already keep their place and digest. Objects that the component no longer renders stay until
// Without removes them. An object of another component moves over.
func (inv Inventory) With(component string, dependsOn []string, entries []Entry) Inventory {
	return inv.WithGroups(Group{component, dependsOn, entries})
}

// WithGroups is With for several components, one after the other. It looks at each object once, unless
// one moves.
func (inv Inventory) WithGroups(groups ...Group) Inventory {
	out, places := slices.Clone(inv), newPlaces(inv)
	for _, g := range groups {
		g.Objects = slices.Clone(g.Objects)
		if places.moves(g) {
			for i := range g.Objects {
				out = out.withdrawn(g.Component, &g.Objects[i])
			}
			places = newPlaces(out)
		}
		i, known := places.groups[g.Component]
		if !known && len(g.Objects) == 0 {
			continue
		}
		if !known {
			i = len(out)
			out = append(out, Group{Component: g.Component})
			places.groups[g.Component] = i
		}
		have := out[i]
		have.DependsOn = g.DependsOn
		if len(g.Objects) > 0 {
			have.Objects = slices.Clone(have.Objects)
		}
		for _, e := range g.Objects {
			key := placeKey{i, e.Ref("").Identity()}
			if j, there := places.objects[key]; there {
				e.Digest = have.Objects[j].Digest
				have.Objects[j] = e.knowing(have.Objects[j])
				continue
			}
			places.objects[key] = len(have.Objects)
			places.owners[key.ref] = append(places.owners[key.ref], g.Component)
			have.Objects = append(have.Objects, e)
		}
		out[i] = have
	}
	return out
}

// places says where the components and objects of an inventory are in it.
type places struct {
	groups  map[string]int
	objects map[placeKey]int
	// owners are the components of each object, one unless the inventory was forged.
	owners map[cluster.Ref][]string
}

type placeKey struct {
	group int
	ref   cluster.Ref
}

func newPlaces(inv Inventory) places {
	out := places{map[string]int{}, map[placeKey]int{}, map[cluster.Ref][]string{}}
	for i, g := range slices.Backward(inv) { // the first of two counts
		out.groups[g.Component] = i
		for j, e := range slices.Backward(g.Objects) {
			ref := e.Ref("").Identity()
			out.objects[placeKey{i, ref}] = j
			out.owners[ref] = append(out.owners[ref], g.Component)
		}
	}
	return out
}

// moves reports whether another component has an object of a group.
func (p places) moves(g Group) bool {
	return slices.ContainsFunc(g.Objects, func(e Entry) bool {
		return slices.ContainsFunc(p.owners[e.Ref("").Identity()], func(component string) bool { return component != g.Component })
	})
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
	e.UIDPrefix, e.Content, e.Ended, e.Last = known.UIDPrefix, known.Content, known.Ended, known.Last
	return e
}

// edited returns the inventory with a change of its entries. It copies only what changes.
func (inv Inventory) edited(edit func(component string, e *Entry)) Inventory {
	out := slices.Clone(inv)
	var e Entry
	for i, g := range inv {
		copied := false
		for j := range g.Objects {
			e = g.Objects[j]
			if edit(g.Component, &e); e == g.Objects[j] {
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

// WithDigests returns the inventory with the digests of objects that were applied.
func (inv Inventory) WithDigests(ownerNamespace string, objects ...Desired) Inventory {
	if len(objects) == 0 {
		return inv
	}
	applied := map[string]map[cluster.Ref]Desired{}
	for _, d := range objects {
		if applied[d.Component] == nil {
			applied[d.Component] = map[cluster.Ref]Desired{}
		}
		applied[d.Component][d.Ref().Identity()] = d
	}
	return inv.edited(func(component string, e *Entry) {
		if of := applied[component]; of != nil {
			if d, ok := of[e.Ref(ownerNamespace).Identity()]; ok {
				e.Digest, e.Content = d.Digest, d.Content
			}
		}
	})
}

// WithUIDs returns the inventory with the UIDs of objects that are the owner's.
func (inv Inventory) WithUIDs(ownerNamespace string, objects ...*unstructured.Unstructured) Inventory {
	uids := map[cluster.Ref]string{}
	for _, u := range objects {
		uids[cluster.RefOf(u).Identity()] = uidOf(u)
	}
	return inv.edited(func(_ string, e *Entry) {
		if uid, seen := uids[e.Ref(ownerNamespace).Identity()]; seen {
			e.UIDPrefix = uid
		}
	})
}

// OrphanAll returns the inventory with every object to be left behind.
func (inv Inventory) OrphanAll() Inventory {
	return inv.edited(func(_ string, e *Entry) { e.Orphan = true })
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

// Filtered returns the inventory with only some of its objects, as if Without removed the others.
func (inv Inventory) Filtered(keep func(component string, e Entry) bool) Inventory {
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

// sameObject compares identities, without the version of the API. Most names differ, and to compare them costs least.
func (e Entry) sameObject(other Entry) bool {
	return e.Name == other.Name && e.Ref("").Identity() == other.Ref("").Identity()
}

// NeedsTeardown reports whether garbage collection is not enough: the objects have an order of
// deletion, or are in another namespace or cluster-scoped.
func (inv Inventory) NeedsTeardown() bool {
	return slices.ContainsFunc(inv, func(g Group) bool {
		return len(g.DependsOn) > 0 || slices.ContainsFunc(g.Objects, func(e Entry) bool { return e.Namespace != "" || e.ClusterScoped })
	})
}
