package vet_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// TestNamesThatDoubleEachOtherAreFollowedOnce has 2^40 ways from a loop to the number that
// drives it.
func TestNamesThatDoubleEachOtherAreFollowedOnce(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(`_a40: cr.spec.size
`)
	for i := range 40 {
		fmt.Fprintf(&text, "_a%d: [_a%d, _a%d][0]\n", i, i+1, i+1)
	}
	text.WriteString("_numbers: list.Range(0, _a0, 1)\n")
	wantOneWarning(t, text.String())
}

// TestStructsThatEmbedEachOtherHaveAnEnd has structs that are as CUE allows them.
func TestStructsThatEmbedEachOtherHaveAnEnd(t *testing.T) {
	t.Parallel()
	wantOneWarning(t, `_a: {_a, _b, x: cr.spec.size, y: [string]: int}
_b: {_a}
_numbers: [list.Range(0, _a.x, 1), list.Range(0, _b.y.z, 1), [for v in _b.y {v}]]
`)
}

// TestALoopOverWhatIsAFaultIsNoGrowth has a map that no resource can have an entry of, which is a fault by itself.
func TestALoopOverWhatIsAFaultIsNoGrowth(t *testing.T) {
	t.Parallel()
	wantOneWarning(t, `#Spec: ports: {[string]: int & string}
_numbers: [list.Range(0, cr.spec.size, 1), [for p in cr.spec.ports {p}]]
`)
}

// counted begins packages whose resources have a number.
const counted = `package shop

import (
	"list"

	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
#Spec: size: int | *1
`

// wantOneWarning has a package with a body judged of which only the number of its spec is to be warned of.
func wantOneWarning(t *testing.T, body string) {
	t.Helper()
	files := fstest.MapFS{"shop/shop.cue": {Data: []byte(counted + body)}}
	s, err := source.Loader{}.Module("shop", "", "shop", files)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := vet.Examine(p, nil).All()
	if len(got) != 1 || got[0].Path != "cr.spec.size" {
		t.Errorf("got %v", got)
	}
}
