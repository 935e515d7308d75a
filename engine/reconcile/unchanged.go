package reconcile

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A reading is what a reconcile reads besides the resource itself.
type reading struct {
	objects []cluster.Ref
	inputs  []program.Input
}

// equal reports whether another reading is of the same objects and inputs.
func (r reading) equal(other reading) bool {
	sameInput := func(a, b program.Input) bool {
		return reflect.DeepEqual(rollout.SelectionOf(a), rollout.SelectionOf(b))
	}
	return slices.Equal(r.objects, other.objects) && slices.EqualFunc(r.inputs, other.inputs, sameInput)
}

// A noop is what a reconcile has read that found a resource Ready and nothing to do. While all of it has
// the same versions, another reconcile would find the same, since a rollout is a function of what it reads.
type noop struct {
	reading
	// again is when to reconcile again without an event.
	again time.Duration
	// versions identifies what the reconcile has read. It was read before the reconcile, so it is never later than
	// what the reconcile has seen.
	versions string
}

// unchanged reports whether a reconcile would find what the last one has found, and returns when to reconcile
// again. It reads from caches only.
func (r *Reconciler) unchanged(ctx context.Context, key types.NamespacedName, p Package) (time.Duration, bool) {
	m := r.memories.peek(key)
	if m == nil || m.lastNoop == nil || p == nil {
		return 0, false
	}
	cr, err := r.Resources.GetCached(ctx, r.ref(key))
	if err != nil || cr == nil || cr.GetUID() != m.uid || r.versions(ctx, cr, p, m.lastNoop.reading) != m.lastNoop.versions {
		return 0, false
	}
	return m.lastNoop.again, true
}

// expectReading notes what the reconcile will probably read, and the versions of that. A reconcile that reads something else
// tells nothing of the next one.
func (s *state) expectReading(ctx context.Context) {
	if was := s.memory.read; was != nil {
		s.expected = *was
	} else {
		s.expected = reading{objects: s.inventoryRefs(), inputs: s.configInputs()} // a package may have no other input
	}
	s.expectedVersions = s.versions(ctx, s.cr, s.program, s.expected)
}

// inventoryRefs returns the objects of the inventory that a rollout reads. An inventory is a part of a status, and may
// be forged: no object is read that is out of the resource's reach.
func (s *state) inventoryRefs() []cluster.Ref {
	var out []cluster.Ref
	for _, e := range s.inventory.Entries() {
		if ref := e.Ref(s.owner.Namespace); s.owner.Reaches(ref) {
			out = append(out, ref)
		}
	}
	return out
}

// versions identifies everything that a reconcile reads of a resource that has nothing to do. It returns "" if something is
// missing or cannot be read, and if there are patches, whose status has to be written.
func (r *Reconciler) versions(ctx context.Context, cr *unstructured.Unstructured, p Package, read reading) string {
	if r.allowed(cr, AnnotationLogLevel) != "" {
		return ""
	}
	key := types.NamespacedName{Namespace: cr.GetNamespace(), Name: cr.GetName()}
	if patches, err := r.patchesOf(ctx, key); err != nil || len(patches) > 0 {
		return ""
	}
	v := versions{sha256.New()}
	v.add(p.Name(), p.Digest(), r.packageFault(), r.patchesUnread(key.Namespace), epochOf(p))
	if !v.addObject(cr) {
		return ""
	}
	if !r.addObjects(ctx, v, read.objects) || !r.addInputs(ctx, v, read.inputs) {
		return ""
	}
	return v.String()
}

// A correctable is a Package of which it may turn out that earlier answers were wrong.
type correctable interface {
	// Epoch changes when it does.
	Epoch() string
}

// epochOf returns the epoch of the answers of a package.
func epochOf(p Package) string {
	if c, ok := p.(correctable); ok {
		return c.Epoch()
	}
	return ""
}

// addObjects adds the versions of objects, and whether their kinds belong to packages. It reports
// whether all have one.
func (r *Reconciler) addObjects(ctx context.Context, v versions, objects []cluster.Ref) bool {
	for _, ref := range objects {
		u, err := r.Cluster.GetCached(cluster.VersionsOnly(ctx), ref)
		if err != nil || u == nil || !v.addObject(u) {
			return false
		}
		if r.Subsystem == nil {
			continue
		}
		reports, err := r.Subsystem(ctx, ref.GroupKind())
		if err != nil {
			return false
		}
		v.add(strconv.FormatBool(reports))
	}
	return true
}

// addInputs adds the versions of what inputs select. It reports whether all have one.
func (r *Reconciler) addInputs(ctx context.Context, v versions, inputs []program.Input) bool {
	for _, i := range inputs {
		found, err := r.Cluster.ListCached(ctx, rollout.SelectionOf(i))
		if err != nil {
			return false
		}
		v.add(i.Name)
		for _, u := range found {
			if !v.addObject(u) {
				return false
			}
		}
	}
	return true
}

// versions is a digest in the making: an input may select thousands of objects.
type versions struct{ hash.Hash }

func (v versions) add(parts ...string) {
	for _, part := range parts {
		_, _ = io.WriteString(v, part) // a hash never errors
		_, _ = v.Write([]byte{0})
	}
}

func (v versions) String() string { return string(v.Sum(nil)) }

// addObject adds the version of an object, and reports whether it has one.
func (v versions) addObject(u *unstructured.Unstructured) bool {
	v.add(string(u.GetUID()), u.GetResourceVersion())
	return u.GetResourceVersion() != ""
}

// noteNoop remembers what the reconcile has read, and that it has found the resource Ready and nothing to do if so.
func (s *state) noteNoop(result rollout.Result, again time.Duration, err error) {
	s.memory.lastNoop, s.memory.read = nil, nil
	if err != nil {
		return
	}
	s.memory.read = &reading{objects: s.inventoryRefs(), inputs: s.inputs}
	// A timer of the engine is for something without a version, such as a kind that is not served yet.
	if result.RetryAfter > 0 || again != result.RequeueAfter {
		return
	}
	if !s.statusUnchanged || !result.Completion.Ready() || len(result.Events) > 0 || len(s.patches) > 0 || s.log.V(1).Enabled() {
		return
	}
	waits := func(c status.Component) bool { return c.State != status.Verified && c.Reason != status.ReasonExcluded }
	if slices.ContainsFunc(result.Completion.Components, waits) {
		return
	}
	if s.expectedVersions != "" && s.expected.equal(*s.memory.read) {
		s.memory.lastNoop = &noop{reading: s.expected, again: again, versions: s.expectedVersions}
	}
}
