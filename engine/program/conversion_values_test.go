package program_test

import (
	"strings"
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// deriving is a package whose conversion makes other values of those of a secret.
const deriving = `package shop

import (
	"encoding/base64"
	"strings"
	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: {spec: #Spec, storage: true}
cr: spec: #Spec
#Spec: {encoded?: strings.MaxRunes(3), parts?: [...strings.MaxRunes(3)], number?: <=3, texts?: [string]: strings.MaxRunes(3)}
#Old: {secret?: string, number?: int, texts?: [string]: string}
versions: v1beta1: {
	spec: #Old
	convert: v1: {
		to: {given: #Old, spec: {
			if given.secret != _|_ {encoded: base64.Encode(null, given.secret), parts: strings.Split(given.secret, "-")}
			if given.number != _|_ {number: given.number}
			if given.texts != _|_ {texts: given.texts}
		}}
		from: {given: #Spec, spec: {}}
	}
}
`

func TestAConversionOfAResourceFailsWithoutItsValues(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		spec   any
		want   []string
		never  []string
	}{
		"Derived": {"a piece or an encoding tells as much as the text", map[string]any{"secret": "opensesame-andmore"}, []string{"spec.encoded: the value does not fit", "spec.parts", "shop.cue:"}, []string{"opensesame", "andmore", "b3BlbnNlc2FtZS1hbmRtb3Jl"}},
		"Number":  {"a number may be a secret", map[string]any{"number": int64(48151623)}, []string{"spec.number: the value does not fit"}, []string{"48151623"}},
		"Name":    {"the name in a map comes from data", map[string]any{"texts": map[string]any{"opensesame": "andmore"}}, []string{"spec.texts: the value does not fit"}, []string{"opensesame", "andmore"}},
		"Unknown": {"so does a name that no schema has", map[string]any{"opensesame": int64(1)}, []string{"spec: the value does not fit"}, []string{"opensesame"}},
		"Large":   {"and the name of what is too large", map[string]any{"texts": map[string]any{"opensesame": strings.Repeat("a", 1<<20)}}, []string{"exceeds a limit"}, []string{"opensesame"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := inline.Program(t, deriving).Conversions().ConvertResource(program.Conversion{From: "v1beta1", To: "v1", Spec: tc.spec})
			if err == nil {
				t.Fatalf("%s: it was converted", tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is missing in %v", tc.reason, want, err)
				}
			}
			for _, never := range tc.never {
				if strings.Contains(err.Error(), never) {
					t.Errorf("%s: %q is in %v", tc.reason, never, err)
				}
			}
		})
	}
}
