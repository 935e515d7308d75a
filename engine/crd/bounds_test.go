package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"cuelang.org/go/cue/cuecontext"

	"operetta.dev/engine/crd"
)

// TestDefinitionsThatDoubleEachOtherEnd has 2^40 ways through its references.
func TestDefinitionsThatDoubleEachOtherEnd(t *testing.T) {
	t.Parallel()
	for name, leaf := range map[string]string{"Struct": "{a: int | *1}", "Scalar": "int & >0", "List": "[...int]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var source strings.Builder
			for i := range 40 {
				fmt.Fprintf(&source, "#D%d: #D%d & #D%d\n", i, i+1, i+1)
			}
			fmt.Fprintf(&source, "#D40: %s\n#Spec: x: #D0\n", leaf)
			if _, err := crd.Generate(definitionOf(cuecontext.New().CompileString(source.String()))); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSchemasBeyondAllBoundsAreFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, source, want string }{
		"Deep": {
			reason: "the walk has a bottom, whatever the author writes",
			source: "#Spec: " + strings.Repeat("{a?: ", 80) + "int" + strings.Repeat("}", 80),
			want:   "the schema is nested too deeply",
		},
		"Wide": {
			reason: "a CRD of so many fields does not fit into etcd",
			source: "import \"list\"\n#Spec: {for i in list.Range(0, 150, 1) {\"a\\(i)\"?: {for j in list.Range(0, 150, 1) {\"b\\(j)\"?: int}}}}",
			want:   "the schema is too large for a CRD",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := crd.Generate(definitionOf(cuecontext.New().CompileString(c.source)))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("%s\nwant %s\ngot  %.500v", c.reason, c.want, err)
			}
		})
	}
}
