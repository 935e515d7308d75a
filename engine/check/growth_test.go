package check_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// TestNamesThatDoubleEachOtherAreFollowedOnce has 2^40 ways from a loop to the number that
// drives it.
func TestNamesThatDoubleEachOtherAreFollowedOnce(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(`package shop

import (
	"list"

	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
#Spec: n: int | *1
_a40: cr.spec.n
`)
	for i := range 40 {
		fmt.Fprintf(&text, "_a%d: [_a%d, _a%d][0]\n", i, i+1, i+1)
	}
	text.WriteString("_numbers: list.Range(0, _a0, 1)\n")
	files := fstest.MapFS{"shop/shop.cue": {Data: []byte(text.String())}}
	s, err := source.New(files, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	got := check.Warnings(p)
	if len(got) != 1 || got[0].Path != "cr.spec.n" {
		t.Errorf("got %v", got)
	}
}
