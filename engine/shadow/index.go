package shadow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
)

// An index says which resources an event concerns. It holds only what concerns one: the resources, what each has
// read, and which objects belong to them. It is safe for concurrent use.
type index struct {
	mu sync.Mutex
	// kinds are those of the packages.
	kinds map[schema.GroupKind]bool
	// resources are the custom resources that exist, by their identity, and byUID the same by their UIDs.
	resources map[cluster.Ref]*tracked
	byUID     map[types.UID]cluster.Ref
	// readers are the resources that have read an object.
	readers map[cluster.Ref]map[cluster.Ref]bool
	// selecting are the resources that have read a selection of a kind.
	selecting map[schema.GroupKind]map[cluster.Ref]bool
	// owned are the objects that have a resource as their owner, by its UID, and owners the same the other way round.
	owned  map[types.UID]map[cluster.Ref]dependent
	owners map[cluster.Ref][]types.UID
}

// A tracked resource is one that exists.
type tracked struct {
	uid types.UID
	// seen is what fingerprint returns of what was compared last, or "".
	seen  string
	reads *reads
	// selected are the objects that its selections have matched.
	selected map[cluster.Ref]bool
}

func newIndex() *index {
	return &index{
		kinds: map[schema.GroupKind]bool{}, resources: map[cluster.Ref]*tracked{}, byUID: map[types.UID]cluster.Ref{},
		readers: map[cluster.Ref]map[cluster.Ref]bool{}, selecting: map[schema.GroupKind]map[cluster.Ref]bool{}, owned: map[types.UID]map[cluster.Ref]dependent{}, owners: map[cluster.Ref][]types.UID{},
	}
}

// serve notes a kind of a package.
func (x *index) serve(kind schema.GroupKind) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kinds[kind] = true
}

// of returns the resources of a kind.
func (x *index) of(kind schema.GroupKind) []cluster.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []cluster.Ref
	for ref := range x.resources {
		if ref.GroupKind() == kind {
			out = append(out, ref)
		}
	}
	return out
}

// withdraw forgets a kind of a package with its resources, and returns these.
func (x *index) withdraw(kind schema.GroupKind) []cluster.Ref {
	out := x.of(kind)
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.kinds, kind)
	for _, ref := range out {
		x.forget(ref)
	}
	return out
}

// forget forgets a resource.
func (x *index) forget(ref cluster.Ref) {
	t := x.resources[ref]
	if t == nil {
		return
	}
	x.unread(ref, t)
	delete(x.byUID, t.uid)
	delete(x.resources, ref)
}

// unread forgets what a resource has read.
func (x *index) unread(ref cluster.Ref, t *tracked) {
	if t.reads == nil {
		return
	}
	for o := range t.reads.objects {
		remove(x.readers, o.Identity(), ref)
	}
	for _, s := range t.reads.selections {
		remove(x.selecting, s.Kind.GroupKind(), ref)
	}
}

// remove removes a member of a set, and the set with its last member.
func remove[K, V comparable](from map[K]map[V]bool, set K, member V) {
	if delete(from[set], member); len(from[set]) == 0 {
		delete(from, set)
	}
}

// insert adds a member to a set.
func insert[K, V comparable](into map[K]map[V]bool, set K, member V) {
	if into[set] == nil {
		into[set] = map[V]bool{}
	}
	into[set][member] = true
}

// fingerprint tells whether a custom resource is another one for a comparison. Its status is not: an operator that
// reports often must not have it compared each time.
func fingerprint(m metav1.Object) string {
	generation := fmt.Sprint(m.GetGeneration())
	if m.GetGeneration() == 0 {
		generation = m.GetResourceVersion()
	}
	return fmt.Sprint(m.GetUID(), generation, m.GetLabels(), m.GetAnnotations(), m.GetDeletionTimestamp() != nil)
}

// compared notes what the comparison of a resource has read, and what it was. Objects that have
// changed since come as events.
func (x *index) compared(ref cluster.Ref, resource metav1.Object, r *reads) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.resources[ref]
	if t == nil {
		return
	}
	x.unread(ref, t)
	t.seen, t.reads = fingerprint(resource), r
	for o := range r.objects {
		insert(x.readers, o.Identity(), ref)
	}
	for _, s := range r.selections {
		insert(x.selecting, s.Kind.GroupKind(), ref)
	}
}

// dependents returns the objects that belong to a resource.
func (x *index) dependents(uid types.UID) []dependent {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.SortedFunc(maps.Values(x.owned[uid]), func(a, b dependent) int { return strings.Compare(a.String(), b.String()) })
}

// An event is what has happened to an object.
type event string

const (
	exists event = "exists"
	gone   event = "gone"
)

// observe takes an event in, and returns the resources that are to be compared again.
func (x *index) observe(kind schema.GroupVersionKind, m *metav1.PartialObjectMetadata, what event) []cluster.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	ref := cluster.Ref{GroupVersionKind: kind, Namespace: m.Namespace, Name: m.Name}
	concerned := map[cluster.Ref]bool{}
	if x.kinds[kind.GroupKind()] {
		x.resource(ref.Identity(), m, what, concerned)
	}
	x.owns(ref, m, what, concerned)
	version := m.ResourceVersion
	if what == gone {
		version = ""
	}
	for reader := range x.readers[ref.Identity()] {
		if read := x.resources[reader].reads.version(ref); read != version {
			concerned[reader] = true
		}
	}
	x.selections(ref, m, what, concerned)
	return slices.SortedFunc(maps.Keys(concerned), func(a, b cluster.Ref) int { return strings.Compare(a.String(), b.String()) })
}

// version returns the version of an object that was read, in whatever version of its kind.
func (r *reads) version(ref cluster.Ref) string {
	for o, version := range r.objects {
		if o.Identity() == ref.Identity() {
			return version
		}
	}
	return ""
}

// resource takes an event of a custom resource in.
func (x *index) resource(ref cluster.Ref, m *metav1.PartialObjectMetadata, what event, concerned map[cluster.Ref]bool) {
	t := x.resources[ref]
	switch {
	case what == gone:
		x.forget(ref)
		concerned[ref] = true // to be taken out of the summary
		return
	case t != nil && t.uid != m.UID:
		x.forget(ref)
		t = nil
	}
	if t == nil {
		t = &tracked{uid: m.UID, selected: map[cluster.Ref]bool{}}
		x.resources[ref], x.byUID[m.UID] = t, ref
	}
	if t.seen != fingerprint(m) {
		concerned[ref] = true
	}
}

// owns notes whose an object is.
func (x *index) owns(ref cluster.Ref, m *metav1.PartialObjectMetadata, what event, concerned map[cluster.Ref]bool) {
	id := ref.Identity()
	var now []types.UID
	if what == exists && m.DeletionTimestamp == nil {
		now = x.ownersOf(ref.GroupVersionKind, m)
	}
	for _, uid := range x.owners[id] {
		if slices.Contains(now, uid) {
			continue
		}
		if delete(x.owned[uid], id); len(x.owned[uid]) == 0 {
			delete(x.owned, uid)
		}
		if resource, known := x.byUID[uid]; known {
			concerned[resource] = true
		}
	}
	component, _, _ := strings.Cut(m.Annotations[ownership.ComponentAnnotation], "/")
	for _, uid := range now {
		if x.owned[uid] == nil {
			x.owned[uid] = map[cluster.Ref]dependent{}
		}
		_, known := x.owned[uid][id]
		x.owned[uid][id] = dependent{ref, component}
		if resource, tracks := x.byUID[uid]; tracks && !known {
			concerned[resource] = true
		}
	}
	if x.owners[id] = now; len(now) == 0 {
		delete(x.owners, id)
	}
}

// ownersOf returns the UIDs of the resources that an object belongs to: by references, as those of most operators,
// or by the UID in a label or an annotation, as those of kro and of this engine.
func (x *index) ownersOf(kind schema.GroupVersionKind, m *metav1.PartialObjectMetadata) []types.UID {
	var out []types.UID
	for _, r := range m.OwnerReferences {
		if x.kinds[schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()] {
			out = append(out, r.UID)
		}
	}
	marks := []map[string]string{m.Labels, m.Annotations}
	if isDerived(kind, m) {
		marks = nil
	}
	for _, texts := range marks {
		for _, text := range texts {
			if _, known := x.byUID[types.UID(text)]; known {
				out = append(out, types.UID(text))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isDerived reports whether the labels and annotations of an object may be those of another one: a ReplicaSet has the
// annotations of its Deployment, an EndpointSlice the labels of its Service, and both have that as their controller.
// Endpoints have the labels of their Service, and no reference.
func isDerived(kind schema.GroupVersionKind, m *metav1.PartialObjectMetadata) bool {
	return metav1.GetControllerOfNoCopy(m) != nil || kind.GroupKind() == schema.GroupKind{Kind: "Endpoints"}
}

// selections finds the resources that have selected an object, or would now.
func (x *index) selections(ref cluster.Ref, m *metav1.PartialObjectMetadata, what event, concerned map[cluster.Ref]bool) {
	for resource := range x.selecting[ref.GroupKind()] {
		t := x.resources[resource]
		for _, s := range t.reads.selections {
			if s.Kind.GroupKind() != ref.GroupKind() || s.Namespace != "" && s.Namespace != ref.Namespace || s.Name != "" && s.Name != ref.Name {
				continue
			}
			matches := what == exists && labels.SelectorFromSet(s.Labels).Matches(labels.Set(m.Labels))
			if matches || t.selected[ref.Identity()] {
				concerned[resource] = true
			}
			if matches {
				t.selected[ref.Identity()] = true
				continue
			}
			delete(t.selected, ref.Identity())
		}
	}
}

// known returns the objects of a kind in a namespace, or in all for "", of which the index holds something.
func (x *index) known(kind schema.GroupKind, namespace string) []cluster.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	found := map[cluster.Ref]bool{}
	add := func(ref cluster.Ref) {
		if ref.GroupKind() == kind && (namespace == "" || ref.Namespace == namespace) {
			found[ref.Identity()] = true
		}
	}
	for ref := range x.owners {
		add(ref)
	}
	for ref := range x.readers {
		add(ref)
	}
	for ref, t := range x.resources {
		add(ref)
		for selected := range t.selected {
			add(selected)
		}
	}
	return slices.Collect(maps.Keys(found))
}

// readersOf returns the resources that have read objects of a kind in a namespace, or in any for "".
func (x *index) readersOf(kind schema.GroupKind, namespace string) []cluster.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []cluster.Ref
	for ref, t := range x.resources {
		if t.reads != nil && t.reads.has(kind, namespace) {
			out = append(out, ref)
		}
	}
	return out
}

// has reports whether something of a kind was read in a namespace, or in any for "".
func (r *reads) has(kind schema.GroupKind, namespace string) bool {
	for o := range r.objects {
		if o.GroupKind() == kind && (namespace == "" || o.Namespace == namespace) {
			return true
		}
	}
	return slices.ContainsFunc(r.selections, func(s cluster.Selection) bool {
		return s.Kind.GroupKind() == kind && (namespace == "" || s.Namespace == "" || s.Namespace == namespace)
	})
}

// hasOwned reports whether an object of a kind belongs to a resource.
func (x *index) hasOwned(kind schema.GroupKind) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for ref := range x.owners {
		if ref.GroupKind() == kind {
			return true
		}
	}
	return false
}
