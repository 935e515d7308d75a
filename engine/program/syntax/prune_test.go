package syntax_test

import (
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/parser"
	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program/syntax"
)

func TestFieldsAreRemovedWithWhatOnlyTheyReferTo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
	}{
		"Alone":      {"nothing refers to it", "a: 1\nb: 2", []string{"b"}},
		"Everywhere": {"a field may be written in several places", "a: x: 1\nb: 2\na: y: 1", []string{"b"}},
		"Referred":   {"another field refers to it", "a: 1\nb: a", []string{"a", "b"}},
		"Inside":     {"from anywhere inside", "a: x: 1\nb: c: [for v in a {v}]", []string{"a", "b"}},
		"Helpers":    {"hidden fields and definitions go with it", "a: _x\n_x: #Y\n#Y: 1\nb: _z\n_z: 2", []string{"b", "_z"}},
		"Shared":     {"unless another field needs them", "a: _x\n_x: 1\nb: _x", []string{"_x", "b"}},
		"Through":    {"and so does a helper of another field", "a: 1\n_x: a\nb: _x", []string{"a", "_x", "b"}},
		"Circle":     {"helpers of each other do not", "a: _x\n_x: y: _z\n_z: y: _x\nb: 1", []string{"b"}},
		"Alias":      {"another name is not looked for", "X=a: 1\nb: X", []string{"a", "b"}},
		"Variable":   {"a variable is no field, and stays", "a: 1\nlet x = a\nb: x", []string{"a", "b"}},
		"Embedded":   {"what is embedded stays", "a: 1\n{c: a}\nb: 1", []string{"a", "b"}},
		"Quoted":     {"a quoted label is the same field", "\"a\": 1\nb: 1", []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inst := build.NewContext().NewInstance("", nil)
			file, err := parser.ParseFile("a.cue", tc.text)
			if err == nil {
				err = inst.AddSyntax(file)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := inst.Complete(); err != nil {
				t.Fatal(err)
			}
			syntax.Without(inst, "a")
			var got []string
			for _, d := range inst.Files[0].Decls {
				f, is := d.(*ast.Field)
				if !is {
					continue
				}
				label := f.Label
				if alias, is := label.(*ast.Alias); is {
					label, _ = alias.Expr.(ast.Label)
				}
				name, _, _ := ast.LabelName(label)
				got = append(got, name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
