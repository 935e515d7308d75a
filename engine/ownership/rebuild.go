package ownership

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// A Skipped is an object that names an owner and was not added to its inventory.
type Skipped struct {
	Ref cluster.Ref
	Why string
}

// Rebuild returns the inventory that the marks of an owner's objects describe, for when the status
// has lost it. Anybody may write marks on their own objects, so Rebuild counts only objects that
// prove by themselves that they are the owner's, and only marks that an inventory can have: the result always passes
// Check. It also returns the objects that it skipped, except those that name another owner, too.
func Rebuild(owner Owner, objects []*unstructured.Unstructured) (Inventory, []Skipped) {
	owner.known = nil
	b := &rebuilding{owner: owner, seen: map[cluster.Ref]bool{}, groups: map[string]int{}}
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
	// seen are the objects of the inventory so far, groups are the indexes of its components, and
	// edges is how many edges these have. Anybody may mark as many objects as an inventory may have,
	// so adding one must not search or copy the others.
	seen   map[cluster.Ref]bool
	groups map[string]int
	edges  int
}

// add adds an object to the inventory, or returns why not; "" also for an object of another owner.
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
	mark := u.GetAnnotations()[ComponentAnnotation]
	component, object, _ := strings.Cut(mark, "/")
	g := Group{Component: component, Objects: []Entry{entryOf(u, object, b.owner.Namespace)}}
	if after := u.GetAnnotations()[AfterAnnotation]; after != "" {
		g.DependsOn = strings.Split(after, ",")
	}
	ref := g.Objects[0].Ref("").Identity()
	if b.seen[ref] {
		return ""
	}
	if g.check("") != nil {
		return "its marks " + ComponentAnnotation + " and " + AfterAnnotation + " say nothing that can be"
	}
	i, has := b.groups[component]
	edges := b.edges + len(g.DependsOn)
	if has {
		edges -= len(b.out[i].DependsOn)
	}
	if len(b.seen) == MaxObjects || (!has && len(b.out) == maxComponents) || edges > maxEdges {
		return "there are too many objects"
	}
	b.seen[ref], b.edges = true, edges
	if !has {
		b.groups[component] = len(b.out)
		b.out = append(b.out, g)
		return ""
	}
	b.out[i].DependsOn = g.DependsOn
	b.out[i].Objects = append(b.out[i].Objects, g.Objects...)
	return ""
}

// entryOf returns the entry of an object that exists.
func entryOf(u *unstructured.Unstructured, object, ownerNamespace string) Entry {
	e := newEntry(object, cluster.RefOf(u), ownerNamespace)
	e.UIDPrefix = uidOf(u)
	e.Orphan = u.GetAnnotations()[DeleteAnnotation] == orphan
	if digest := u.GetAnnotations()[AppliedAnnotation]; wrongText(digest, maxDigest) == "" {
		e.Digest = digest
	}
	return e
}
