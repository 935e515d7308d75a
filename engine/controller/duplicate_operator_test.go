package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/ownership"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// reported is a resource whose status says something since a time, in a version.
func reported(version, says string, at time.Time, managers ...string) *unstructured.Unstructured {
	u := watch.NewObject(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"})
	u.SetName("my")
	u.SetResourceVersion(version)
	u.Object["status"] = map[string]any{"says": says}
	for _, m := range append(managers, cluster.FieldManager) {
		stamp := metav1.NewTime(at)
		if m != cluster.FieldManager {
			stamp = metav1.NewTime(at.Add(time.Hour))
		}
		u.SetManagedFields(append(u.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: m, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", Time: &stamp,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status": {"f:says": {}}}`),
		}))
	}
	return u
}

// asked makes a status one that another process has asked about.
func asked(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "PackageBroken", "reason": "Asking"}}}
	return u
}

func deleted(u *unstructured.Unstructured) *unstructured.Unstructured {
	now := metav1.Now()
	u.SetDeletionTimestamp(&now)
	return u
}

// A rivalry is a process that serves a resource, and hears of it.
type rivalry struct {
	*duplicateOperator

	told int
	at   time.Time
}

func newRivalry() *rivalry {
	r := &rivalry{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	r.duplicateOperator = newDuplicateOperator(func(*unstructured.Unstructured) { r.told++ })
	r.now = func() time.Time { return r.at }
	r.predicate().Create(event.TypedCreateEvent[client.Object]{})
	r.at = r.at.Add(time.Minute)
	return r
}

// hear delivers an update of a cache.
func (r *rivalry) hear(before, after *unstructured.Unstructured) {
	before, after = before.DeepCopy(), after.DeepCopy() // several rows hear of the same one at once
	for _, u := range []*unstructured.Unstructured{before, after} {
		ownership.CompactManagedFields(u)
	}
	r.predicate().Update(event.TypedUpdateEvent[client.Object]{ObjectOld: before, ObjectNew: after})
}

func TestStatusThatAnotherProcessWroteIsNoticedOnce(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	old, later := reported("1", "a", start), start.Add(time.Minute)
	key := client.ObjectKeyFromObject(old)
	for name, c := range map[string]struct {
		reason string
		happen func(r *rivalry)
		want   int
	}{
		"another process": {"it was never written here", func(r *rivalry) {
			r.hear(old, reported("2", "b", later))
			r.hear(reported("2", "b", later), reported("3", "c", later.Add(time.Minute)))
		}, 1},
		"another process in the same second": {"times are in seconds", func(r *rivalry) { r.hear(old, reported("2", "b", start)) }, 1},
		"nothing new":                        {"a change of the spec, or of metadata", func(r *rivalry) { r.hear(old, reported("2", "a", start)) }, 0},
		"this process": {"the event comes after the answer", func(r *rivalry) {
			r.writing(key)
			r.written(key, reported("2", "b", later))
			r.hear(old, reported("2", "b", later))
		}, 0},
		"before the answer": {"the event is faster", func(r *rivalry) {
			r.writing(key)
			r.hear(old, reported("2", "b", later))
			r.written(key, reported("2", "b", later))
		}, 0},
		"another one at the same time": {"of two events one is the answer", func(r *rivalry) {
			r.writing(key)
			r.hear(old, reported("2", "x", later))
			r.hear(reported("2", "x", later), reported("3", "b", later.Add(time.Second)))
			r.written(key, reported("3", "b", later.Add(time.Second)))
		}, 1},
		"a write that was refused": {"what was seen is somebody else's", func(r *rivalry) {
			r.writing(key)
			r.hear(old, reported("2", "x", later))
			r.written(key, nil)
		}, 1},
		"a gap in the watch": {"the version is that of a later change of somebody else", func(r *rivalry) {
			r.writing(key)
			r.written(key, reported("2", "b", later))
			r.hear(old, reported("7", "b", later))
		}, 0},
		"another manager": {"a person, or another controller, has a condition there", func(r *rivalry) {
			r.hear(old, reported("2", "x", start, "kubectl-edit"))
		}, 0},
		"a backup":   {"it brings an older status back", func(r *rivalry) { r.hear(old, reported("2", "x", start.Add(-time.Hour))) }, 0},
		"a deletion": {"any operator may complete it", func(r *rivalry) { r.hear(old, deleted(reported("2", "x", later))) }, 0},
		"a question": {"who asks does not serve", func(r *rivalry) {
			r.hear(old, asked(reported("2", "x", later)))
			r.hear(asked(reported("2", "x", later)), reported("3", "x", later.Add(time.Minute)))
		}, 0},
		"a predecessor": {"its last writes arrive late", func(r *rivalry) {
			r.at = r.began.Add(time.Second)
			r.hear(old, reported("2", "b", later))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRivalry()
			c.happen(r)
			if r.told != c.want {
				t.Errorf("%s: it was told %d times, not %d", c.reason, r.told, c.want)
			}
		})
	}
}

func TestWhatIsKnownOfWritesIsBounded(t *testing.T) {
	t.Parallel()
	r := newRivalry()
	u := reported("1", "a", r.at)
	key := client.ObjectKeyFromObject(u)
	for range 10 * answersKept {
		r.writing(key)
		r.written(key, u)
	}
	if n := len(r.writes[key].answers); n > answersKept {
		t.Errorf("%d answers are kept", n)
	}
	r.predicate().Delete(event.TypedDeleteEvent[client.Object]{Object: u})
	if len(r.writes) != 0 {
		t.Error("a resource that is gone is remembered")
	}
}
