package ownership_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/ownership"
	"operetta.dev/test/machine"
)

func TestAnInventoryHasSoManyThingsAtMost(t *testing.T) {
	t.Parallel()
	groups := func(components, objects, edges int) ownership.Inventory {
		out := make(ownership.Inventory, components)
		for i := range out {
			out[i].Component = fmt.Sprintf("c%d", i)
			for j := range edges {
				if j != i {
					out[i].DependsOn = append(out[i].DependsOn, fmt.Sprintf("c%d", j))
				}
			}
			for j := range objects {
				out[i].Objects = append(out[i].Objects, ownership.Entry{Object: "o", APIVersion: "v1", Kind: "Pod", Name: fmt.Sprintf("p%d-%d", i, j)})
			}
		}
		return out
	}
	for name, row := range map[string]struct {
		inv  ownership.Inventory
		want string
	}{
		"as many as there may be":  {groups(2000, 5, 10), ""},
		"too many components":      {groups(2001, 1, 0), "more than 2000 components"},
		"too many objects":         {groups(1, ownership.MaxObjects+1, 0), "more than 10000 objects"},
		"too many edges":           {groups(1000, 1, 22), "more than 20000 edges"},
		"many in circles, as wide": {groups(2000, 5, 10), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ownership.Decode(row.inv.Encode())
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// TestTheOrderOfTheLargestInventoryIsFoundInTime: anybody who writes a status may make the
// worst of it, which must not cost the other resources their workers.
func TestWhatIsNotKeptLeavesTheOrderBehind(t *testing.T) {
	t.Parallel()
	entry := func(name string) ownership.Entry {
		return ownership.Entry{Object: "o", APIVersion: "v1", Kind: "ConfigMap", Name: name}
	}
	inv := ownership.Inventory{}.With("a", nil, []ownership.Entry{entry("a")}).With("b", []string{"a"}, []ownership.Entry{entry("b1"), entry("b2")}).With("c", []string{"b"}, []ownership.Entry{entry("c1"), entry("c2")})
	got := inv.Filtered(func(component string, e ownership.Entry) bool { return component == "a" || e.Name == "c2" })
	want := ownership.Inventory{}.With("a", nil, []ownership.Entry{entry("a")}).With("c", []string{"a"}, []ownership.Entry{entry("c2")})
	if diff := cmp.Diff(want, got); diff != "" || inv.Len() != 5 {
		t.Errorf("c goes before a, also without what was between them (-want +got):\n%s", diff)
	}
}

func TestTheOrderOfTheLargestInventoryIsFoundInTime(t *testing.T) {
	t.Parallel()
	var inv ownership.Inventory
	const components = 2000
	for i := range components {
		g := ownership.Group{Component: fmt.Sprintf("c%d", i)}
		for j := 1; j <= 10; j++ {
			g.DependsOn = append(g.DependsOn, fmt.Sprintf("c%d", (i+j*j)%components))
		}
		inv = append(inv, g)
	}
	if err := inv.Check(); err != nil {
		t.Fatal(err)
	}
	machine.ExpectProcessorTime(t, 20*time.Second, func() { inv.DeletionOrder() })
}
