package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// said is what the package says of an object.
type said struct {
	Decision         ownership.Action
	Field, Manager   string
	Drops, MayFollow bool
	Salt             string
	Situation        ownership.Situation
	Whose            string
}

func sayingOf(want ownership.Desired, live *unstructured.Unstructured) said {
	s := said{Decision: ownership.Decide(want, live, owner), Drops: ownership.ApplyRemovesOwnerReference(live, owner.UID), Salt: ownership.SaltOf(live)}
	s.Field, s.Manager = ownership.LostField(want, live)
	s.Situation, s.Whose = ownership.Classify(live, owner)
	s.MayFollow = ownership.ReplicasToHandOver(want, live) != nil
	return s
}

func TestManagedFieldsAsTextSayTheSame(t *testing.T) {
	t.Parallel()
	put := func(manager string, edit func(*unstructured.Unstructured)) func(*testing.T, *memory.Cluster, *unstructured.Unstructured) *unstructured.Unstructured {
		return func(t *testing.T, m *memory.Cluster, u *unstructured.Unstructured) *unstructured.Unstructured {
			t.Helper()
			next := u.DeepCopy()
			edit(next)
			out, err := m.Put(manager, next)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, path...) }
	}
	m := memory.New()
	want := stamp(t, rendered(program.Policy{}))
	live, err := m.Apply(t.Context(), want.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name     string
		do       func(*testing.T, *memory.Cluster, *unstructured.Unstructured) *unstructured.Unstructured
		decision ownership.Decision
	}{
		{"it is as it was applied", put("operetta", func(*unstructured.Unstructured) {}), ownership.Keep},
		{"another manager adds a field", put("rival", set("x", "data", "more")), ownership.Keep},
		{"another manager takes a field", put("rival", set("2", "data", "size")), ownership.Repair},
		{"a field is gone", put("rival", func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "data", "size") }), ownership.Repair},
		{"all marks are gone", put("rival", func(u *unstructured.Unstructured) { u.SetAnnotations(nil); u.SetLabels(nil); u.SetOwnerReferences(nil) }), ownership.Refuse},
	} {
		live = step.do(t, m, live)
		compact := live.DeepCopy()
		ownership.CompactManagedFields(compact)
		for range 2 { // what was in sync is remembered
			ownership.CompactManagedFields(compact) // a transform may get what it has returned
			if diff := cmp.Diff(sayingOf(want, live), sayingOf(want, compact)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
			if got := ownership.Decide(want, compact, owner).Decision; got != step.decision {
				t.Errorf("%s: the decision is %s, want %s", step.name, got, step.decision)
			}
		}
	}
}

func BenchmarkDecideInSync(b *testing.B) {
	m := memory.New()
	want, err := ownership.Stamp(owner, "config", rendered(program.Policy{}), ownership.StampOptions{Scope: "Namespaced"})
	if err != nil {
		b.Fatal(err)
	}
	live, err := m.Apply(b.Context(), want.Manifest)
	if err != nil {
		b.Fatal(err)
	}
	compact := live.DeepCopy()
	ownership.CompactManagedFields(compact)
	for name, u := range map[string]*unstructured.Unstructured{"maps": live, "text": compact} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ownership.Decide(want, u, owner).Decision != ownership.Keep {
					b.Fatal("it is not in sync")
				}
			}
		})
	}
}

// A resource at rest has its objects compared with each event. It runs alone, because it counts.
func TestAnObjectInSyncIsParsedOnce(t *testing.T) {
	m := memory.New()
	want := stamp(t, rendered(program.Policy{}))
	live, err := m.Apply(t.Context(), want.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	compact := live.DeepCopy()
	ownership.CompactManagedFields(compact)
	allocations := func(u *unstructured.Unstructured) float64 {
		return testing.AllocsPerRun(20, func() {
			if ownership.Decide(want, u, owner).Decision != ownership.Keep {
				t.Error("it is not in sync")
			}
		})
	}
	if whole, known := allocations(live), allocations(compact); known > whole/2 {
		t.Errorf("comparing what was in sync takes %.0f allocations, and %.0f the first time", known, whole)
	}
}

func TestFieldSetsThatWereTakenArePutBack(t *testing.T) {
	t.Parallel()
	m := memory.New()
	live, err := m.Apply(t.Context(), stamp(t, rendered(program.Policy{})).Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if sets := ownership.TakeFieldSets(live); sets != nil {
		t.Errorf("the fields are no text yet, and these were taken: %v", sets)
	}
	ownership.CompactManagedFields(live)
	whole := live.DeepCopy()
	sets := ownership.TakeFieldSets(live)
	if len(sets) != 1 || sets[0] == nil || cmp.Equal(whole.Object, live.Object) {
		t.Fatalf("%v were taken of %v", sets, live.Object)
	}
	ownership.PutFieldSets(live, sets)
	if diff := cmp.Diff(whole.Object, live.Object); diff != "" {
		t.Errorf("it is not as before (-want +got):\n%s", diff)
	}
}
