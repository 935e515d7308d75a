package ownership

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// A Skipped is an object that names an owner and did not come into its inventory.
type Skipped struct {
	Ref cluster.Ref
	Why string
}

// Rebuild returns the inventory that an owner's objects speak of by their marks:
// what is left to go by when the one in the status was lost. Anybody may write marks on
// what they may write, so that only objects count that the owner Owns, and only marks
// that an inventory can have: it always passes Check. The others that name the owner are
// returned, but for those that name somebody else as well.
func Rebuild(owner Owner, objects []*unstructured.Unstructured) (Inventory, []Skipped) {
	owner.known = nil
	b := &rebuilding{owner: owner, seen: map[cluster.Ref]bool{}, edges: map[string]int{}}
	for _, u := range objects {
		if why := b.add(u); why != "" {
			b.skipped = append(b.skipped, Skipped{cluster.RefOf(u), why})
		}
	}
	slices.SortStableFunc(b.out, func(a, b Group) int { return strings.Compare(a.Component, b.Component) })
	return b.out, b.skipped
}

type rebuilding struct {
	owner   Owner
	out     Inventory
	skipped []Skipped
	// seen are the objects of the inventory so far, and edges and total how many edges it
	// has, by component and of all.
	seen  map[cluster.Ref]bool
	edges map[string]int
	total int
}

// add adds an object to the inventory, or returns why not. What names another owner is
// not worth a word.
func (b *rebuilding) add(u *unstructured.Unstructured) string {
	switch situation, _ := Classify(u, b.owner); situation {
	case Owned, Terminating:
	case Unproven:
		return "its marks do not prove whose it is"
	case OutOfReach:
		return "the package does not reach there"
	case Absent, Predecessor, Foreign:
		return ""
	}
	mark := u.GetAnnotations()[ComponentMark]
	component, object, _ := strings.Cut(mark, "/")
	g := Group{Component: component, Objects: []Entry{entryOf(u, object, b.owner.Namespace)}}
	if after := u.GetAnnotations()[AfterMark]; after != "" {
		g.DependsOn = strings.Split(after, ",")
	}
	ref := g.Objects[0].Ref("").Identity()
	if b.seen[ref] {
		return ""
	}
	if g.check("") != nil {
		return "its marks " + ComponentMark + " and " + AfterMark + " say nothing that can be"
	}
	known, has := b.edges[component]
	if len(b.seen) == MaxObjects || (!has && len(b.edges) == maxComponents) || b.total+len(g.DependsOn)-known > maxEdges {
		return "there are too many objects"
	}
	b.seen[ref] = true
	b.total += len(g.DependsOn) - known
	b.edges[component] = len(g.DependsOn)
	b.out = b.out.With(component, g.DependsOn, g.Objects)
	return ""
}

// entryOf returns the entry of an object that exists.
func entryOf(u *unstructured.Unstructured, object, ownerNamespace string) Entry {
	e := Entry{Object: object, APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: uidOf(u)}
	if digest := u.GetAnnotations()[AppliedMark]; wrongText(digest, maxDigest) == "" {
		e.Digest = digest
	}
	e.Orphan = u.GetAnnotations()[DeleteMark] == orphan
	switch {
	case u.GetNamespace() == ownerNamespace:
	case u.GetNamespace() == "":
		e.ClusterScoped = true
	default:
		e.Namespace = u.GetNamespace()
	}
	return e
}
