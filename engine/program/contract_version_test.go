package program

import (
	"testing"

	"cuelang.org/go/cue/build"
	"operetta.dev/engine/source"
)

func TestAnEngineReadsPackagesOfItsContractAndOfEarlierOnes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, contract string
		known            int
		refused          bool
	}{
		"none":                            {"it is of the first version", "", 1, false},
		"the same":                        {"the engine knows it", "contract: 1", 1, false},
		"an earlier one":                  {"an engine reads what the ones before it read", "contract: 1", 2, false},
		"a later one":                     {"the engine would misread it", "contract: 3", 2, true},
		"a much later one":                {"no number is too large to be said", "contract: 99999999999999999999", 2, true},
		"a later one in another notation": {"it is the same number", "contract: 0x3", 2, true},
		"in hexadecimal":                  {"CUE writes numbers in several ways", "contract: 0x1", 1, false},
		"in binary":                       {"CUE writes numbers in several ways", "contract: 0b1", 1, false},
		"with a separator":                {"CUE writes numbers in several ways", "contract: 1_0", 10, false},
		"a quoted label":                  {"it is the same field", `"contract": 3`, 2, true},
		"a field of a struct":             {"it is another field", "config: contract: 3", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := source.Loader{}.Files("p", "test", ".", map[string]string{"main.cue": "package p\n\n" + row.contract + "\n"})
			if err != nil {
				t.Fatal(err)
			}
			b := &builder{snapshot: s, context: build.NewContext()}
			inst := b.instance(s.Dir())
			if faults := b.addFiles(inst, s.Dir(), ""); len(faults) > 0 {
				t.Fatal(faults)
			}
			if got := contractFaults(inst, row.known); (len(got) > 0) != row.refused {
				t.Errorf("%s: the faults are %v", row.reason, got)
			}
		})
	}
}
