package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

	"operetta.dev/engine/crd"
)

// TestAnEnumerationCostsInProportionToItsValues: twice as many values are not four times the work.
func TestAnEnumerationCostsInProportionToItsValues(t *testing.T) {
	work := func(values int) float64 {
		var arms []string
		for i := range values {
			arms = append(arms, fmt.Sprintf("%q", fmt.Sprint("v", i)))
		}
		input := cuecontext.New().CompileString("#Spec: e?: "+strings.Join(arms, " | ")+"\n", cue.Filename("enum.cue"))
		def := definitionOf(input)
		return testing.AllocsPerRun(1, func() {
			if _, err := crd.Generate(def); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := work(200), work(400)
	t.Logf("%.0f and %.0f allocations", few, many)
	if many > 2.5*few {
		t.Errorf("200 values take %.0f allocations, and 400 values %.0f", few, many)
	}
}
