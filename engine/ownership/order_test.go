package ownership_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/ownership"
)

// inventoryOf returns an inventory of one object for each component, given as
// "component: its dependencies".
func inventoryOf(lines ...string) ownership.Inventory {
	var out ownership.Inventory
	for _, line := range lines {
		name, after, _ := strings.Cut(line, ":")
		out = out.With(name, strings.Fields(after), []ownership.Entry{{Object: "o", APIVersion: "v1", Kind: "ConfigMap", Name: name}})
	}
	return out
}

// edges returns an inventory's components as inventoryOf takes them.
func edges(inv ownership.Inventory) []string {
	var out []string
	for _, g := range inv {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s: %s", g.Component, strings.Join(g.DependsOn, " ")), " "))
	}
	return out
}

func TestAnInventoryKeepsItsOrderWithoutSomeOfItsComponents(t *testing.T) {
	t.Parallel()
	inv := inventoryOf("a:", "b: a", "c: b x", "d: c", "e: b a")
	b, _, _ := inv.Find(inv[1].Objects[0].Ref("default"), "default")
	if diff := cmp.Diff([]string{"a:", "c: a x", "d: c", "e: a"}, edges(inv.Without("b", b))); diff != "" {
		t.Errorf("what was before b is now before a (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a:", "b: a", "c: b x", "d: c", "e: b a"}, edges(inv)); diff != "" {
		t.Errorf("the inventory itself was changed (-want +got):\n%s", diff)
	}
	all := map[string][]string{"x": {"y", "c"}, "y": {"a", "x"}}
	if diff := cmp.Diff([]string{"a:", "b: a", "c: b a", "d: c", "e: b a"}, edges(inv.WithEdges(func(c string) []string { return all[c] }))); diff != "" {
		t.Errorf("x and y have no objects (-want +got):\n%s", diff)
	}
}

func TestDeletionOrderBreaksCycles(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason string
		inv    ownership.Inventory
		want   map[string][]string
	}{
		"a chain": {
			"the nearest of what is there", inventoryOf("a:", "b: a", "c: b"),
			map[string][]string{"a": {"b"}, "b": {"c"}, "c": nil},
		},
		"two that wait for each other": {
			"the author has dependencies first, more often than not", inventoryOf("a: b", "b: a", "c: a"),
			map[string][]string{"a": {"b", "c"}, "b": nil, "c": nil},
		},
		"a circle of three and one outside of it": {
			"only an edge of the circle is dropped", inventoryOf("a: c", "b: a", "c: b", "d:", "e: d c"),
			map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"e"}, "d": {"e"}, "e": nil},
		},
		"one that depends on itself": {
			"an annotation may say anything", inventoryOf("a: a", "b: a"),
			map[string][]string{"a": {"b"}, "b": nil},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			order, got := row.inv.DeletionOrder(), map[string][]string{}
			for _, g := range row.inv {
				got[g.Component] = order.Blocked(g.Component, func(string) bool { return true })
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s: what goes before each (-want +got):\n%s", row.reason, diff)
			}
		})
	}
	gone := func(c string) bool { return c != "b" }
	if diff := cmp.Diff([]string{"c"}, inventoryOf("a:", "b: a", "c: b").DeletionOrder().Blocked("a", gone)); diff != "" {
		t.Errorf("nothing of b remains, and c comes before it (-want +got):\n%s", diff)
	}
}
