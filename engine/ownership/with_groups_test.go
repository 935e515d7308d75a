package ownership_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/ownership"
)

// Objects move between components, and a forged inventory has some of them twice.
func TestSeveralComponentsAreAddedAsIfOneAfterTheOther(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		groups := func(most int) []ownership.Group {
			var out []ownership.Group
			for range random.IntN(most) {
				g := ownership.Group{Component: fmt.Sprint("c", random.IntN(4))}
				if random.IntN(2) == 0 {
					g.DependsOn = []string{fmt.Sprint("c", random.IntN(4))}
				}
				for _, name := range random.Perm(5)[:random.IntN(4)] { // no component has an object twice
					g.Objects = append(g.Objects, ownership.Entry{
						Object: fmt.Sprint("o", random.IntN(3)), APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint("n", name),
						Digest: fmt.Sprint(random.IntN(3)), UIDPrefix: fmt.Sprint(random.IntN(3)),
					})
				}
				out = append(out, g)
			}
			return out
		}
		have, more := ownership.Inventory(groups(5)), groups(5)
		before := fmt.Sprint(have, more)
		want := have
		for _, g := range more {
			want = want.With(g.Component, g.DependsOn, g.Objects)
		}
		if diff := cmp.Diff(want, have.WithGroups(more...)); diff != "" {
			t.Fatalf("seed %d: %v with %v (-one after the other +together):\n%s", seed, have, more, diff)
		}
		if after := fmt.Sprint(have, more); after != before {
			t.Fatalf("seed %d: they were changed from %s to %s, and others still have them", seed, before, after)
		}
	}
}

// The UID proves whose an object is, and how a Job ended keeps it from running again.
func TestAnObjectThatIsRenderedAgainKeepsWhatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	known := ownership.Entry{Object: "o", APIVersion: "batch/v1", Kind: "Job", Name: "n", Digest: "d", UIDPrefix: "u", Content: "c", Ended: ownership.Succeeded, Last: "{}"}
	again := ownership.Entry{Object: "o", APIVersion: "batch/v1", Kind: "Job", Name: "n", Orphan: true}
	want := known
	want.Orphan = true
	got := ownership.Inventory{{Component: "a", Objects: []ownership.Entry{known}}}.With("a", nil, []ownership.Entry{again})
	if diff := cmp.Diff(ownership.Inventory{{Component: "a", Objects: []ownership.Entry{want}}}, got); diff != "" {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
}

// Without its digest, an object would be written anew although nothing of it has changed.
func TestAnObjectKeepsItsPlaceAndDigestWhenAnotherMovesToItsComponent(t *testing.T) {
	t.Parallel()
	entry := func(name, digest string) ownership.Entry {
		return ownership.Entry{Object: name, APIVersion: "v1", Kind: "ConfigMap", Name: name, Digest: digest, UIDPrefix: "u-" + name}
	}
	inv := ownership.Inventory{
		{Component: "a", Objects: []ownership.Entry{entry("stays", "d"), entry("unwanted", "d")}},
		{Component: "b", Objects: []ownership.Entry{entry("moves", "d"), entry("other", "d")}},
	}
	got := inv.With("a", nil, []ownership.Entry{entry("stays", ""), entry("moves", "")})
	want := ownership.Inventory{
		{Component: "a", Objects: []ownership.Entry{entry("stays", "d"), entry("unwanted", "d"), entry("moves", "")}},
		{Component: "b", Objects: []ownership.Entry{entry("other", "d")}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
}
