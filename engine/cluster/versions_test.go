package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestWhoAsksForVersionsGetsWhatTheCacheHas: at rest, that is all that is asked for.
func TestWhoAsksForVersionsGetsWhatTheCacheHas(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, apimeta.RESTScopeNamespace)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("default")
	u.SetName("child")
	completed := 0
	live := &cluster.Live{
		Client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper).WithObjects(u).Build(),
		ReadFull: func(_ context.Context, cached *unstructured.Unstructured, _ func(context.Context, cluster.Ref) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
			completed++
			return cached, nil
		},
	}
	for want, ctx := range []context.Context{cluster.VersionsOnly(t.Context()), t.Context()} {
		got, err := live.GetCached(ctx, cluster.RefOf(u))
		if err != nil || got == nil || got.GetResourceVersion() == "" {
			t.Fatalf("got %v, error %v", got, err)
		}
		if completed != want {
			t.Errorf("it was completed %d times, want %d", completed, want)
		}
	}
}

func TestAKindIsServedInSomeVersionOrItIsUnknown(t *testing.T) {
	t.Parallel()
	live := &cluster.Live{Kinds: cluster.Kinds(discovered(t, "shops.example.com"))}
	for name, row := range map[string]struct {
		reason string
		kind   schema.GroupKind
		want   string
		wrong  bool
	}{
		"it is served":                {"its objects are there in another version", schema.GroupKind{Group: "budgets.example.com", Kind: "Budget"}, "v1", false},
		"it is gone":                  {"the group that does not answer is another", schema.GroupKind{Group: "budgets.example.com", Kind: "Plan"}, "", false},
		"its group does not answer":   {"it may be there", schema.GroupKind{Group: "shops.example.com", Kind: "Shop"}, "", true},
		"its group is not even known": {"its definition was deleted", schema.GroupKind{Group: "gone.example.com", Kind: "Gone"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := live.ServedVersion(t.Context(), row.kind); got != row.want || (err != nil) != row.wrong {
				t.Errorf("%s: got %q and error %v", row.reason, got, err)
			}
		})
	}
}

// The objects of many resources go with one definition.
func TestManyObjectsOfAKindThatIsGoneAskOnceWhichKindsThereAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		kinds := func() ([]schema.GroupVersionKind, error) {
			asked++
			return ownable, nil
		}
		live := &cluster.Live{Kinds: kinds, RecentKinds: cluster.RecentKinds(kinds)}
		for want := range 2 {
			for range 100 {
				if version, err := live.ServedVersion(t.Context(), thing); version != "" || err != nil {
					t.Fatalf("got %q and error %v", version, err)
				}
			}
			if asked != want+1 {
				t.Errorf("asked %d times, want %d", asked, want+1)
			}
			<-time.After(time.Minute) // the clock is synctest's
		}
	})
}

func TestALiveThatCannotListKindsSaysSo(t *testing.T) {
	t.Parallel()
	live := &cluster.Live{}
	if _, err := live.ServedVersion(t.Context(), thing); err == nil {
		t.Error("an object would count as gone")
	}
	if _, err := live.Owned(t.Context(), "", "owner", "me"); err == nil {
		t.Error("an inventory would count as empty")
	}
}
