package ownership

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// odd are values that an inventory may have somewhere, whoever has written it.
var odd = []any{
	nil, true, false, "", "a", "\xff", "Succeeded", int64(1), 1.5, []any{}, []any(nil), []any{"a"}, []any{nil}, []any{map[string]any{}}, map[string]any{}, map[string]any(nil),
	map[string]any{"component": "x"}, map[string]any{"object": "x"}, "a\u2028b", "<&>",
}

func randomEntry(r *rand.Rand) Entry {
	text := func() string { return []string{"", "", "a", "ü", `"<`, "x/y"}[r.IntN(6)] }
	return Entry{
		Object: text(), APIVersion: text(), Kind: text(), Namespace: text(), Name: text(), Digest: text(), UIDPrefix: text(), Content: text(), Last: text(),
		Ended: FinishState(text()), ClusterScoped: r.IntN(2) == 0, Orphan: r.IntN(2) == 0,
	}
}

func randomInventory(r *rand.Rand) Inventory {
	var out Inventory
	for i := range r.IntN(3) {
		g := Group{Component: fmt.Sprint("c", i)}
		for range r.IntN(3) {
			g.DependsOn = append(g.DependsOn, "c9")
		}
		for range r.IntN(3) {
			g.Objects = append(g.Objects, randomEntry(r))
		}
		out = append(out, g)
	}
	return out
}

func TestAnInventoryIsEncodedAsItsTagsSay(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		inv := randomInventory(r)
		text, err := json.Marshal(inv)
		if err != nil {
			t.Fatal(err)
		}
		want := []any{}
		if len(inv) > 0 {
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, inv.Encode()); diff != "" {
			t.Fatalf("(-json +encoded):\n%s", diff)
		}
	}
}

// spoil puts an odd value somewhere into JSON values, under a name that may be that of another field.
func spoil(r *rand.Rand, v any) any {
	names := []string{"component", "dependsOn", "objects", "object", "apiVersion", "kind", "orphan", "ended", "clusterScoped", "Object", "later"}
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		if r.IntN(3) > 0 {
			if at := slices.Sorted(maps.Keys(v)); len(at) > 0 {
				name := at[r.IntN(len(at))]
				v[name] = spoil(r, v[name])
			}
			return v
		}
		v[names[r.IntN(len(names))]] = runtime.DeepCopyJSONValue(odd[r.IntN(len(odd))])
		return v
	case []any:
		if len(v) > 0 && r.IntN(4) > 0 {
			at := r.IntN(len(v))
			v[at] = spoil(r, v[at])
			return v
		}
	}
	return runtime.DeepCopyJSONValue(odd[r.IntN(len(odd))])
}

// What is read without the decoder is what the decoder reads, and nothing that the decoder refuses is read.
func TestAGroupIsReadAsTheDecoderReadsIt(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	plain := 0
	for range 20_000 {
		for _, v := range randomInventory(r).Encode() {
			for range r.IntN(3) {
				v = spoil(r, v)
			}
			got, is := plainGroup(v)
			if !is {
				continue
			}
			plain++
			want, err := decodeGroup("", v)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%#v: error %v (-decoder +plain):\n%s", v, err, diff)
			}
		}
	}
	if plain < 1000 {
		t.Errorf("only %d groups were plain", plain)
	}
	if _, is := plainGroup(randomInventory(r)); is {
		t.Error("what is no JSON is a group")
	}
}

func TestWhatTheEngineWritesIsPlain(t *testing.T) {
	inv := Inventory{{Component: "web", DependsOn: []string{"config"}, Objects: []Entry{{Object: "a", APIVersion: "v1", Kind: "ConfigMap", Name: "a", Orphan: true, Digest: "d"}}}}
	for _, v := range inv.Encode() {
		if g, is := plainGroup(v); !is || !cmp.Equal(g, inv[0]) {
			t.Errorf("%v is read as %v", v, g)
		}
	}
	values := inv.Encode()
	if n := testing.AllocsPerRun(100, func() { _, _ = plainGroup(values[0]) }); n > 4 {
		t.Errorf("reading a group takes %v allocations", n)
	}
}
