package template

import (
	"math"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
)

// moreTexts are texts that YAML or JSON may write in a way of its own.
var moreTexts = []any{
	"y", "Yes", "off", "null", "~", "true", "True", "1", "1.5", "0x1F", "0o17", "1e3", ".5", ".inf", ".nan", "-", "- a", "? a", ": a", "a: b", "a:b", "a #b", "#a", "!a", "&a", "*a", "%a", "@a", "`a", "|", ">",
	"{a}", "[a]", "a,b", "'", "\"", "it's", "\\", "2024-01-02", "12:30", "12:30:45", "1_000", "+1", "-1", "=", "<<", "10Gi", "http://a.example/b?c=d", " a", "a ", "a\nb", "a\n", "\n", "a\tb", "a\rb", "\x7f", "\u0085", "\ufeff", "\u2028",
	"é", "\U0001f600", "\u200b", "a\u0000", strings.Repeat("word ", 40), strings.Repeat("x", 200), "<&>",
}

// TestWhatIsMarshalledIsWhatCUEWrites compares texts and numbers in fields, in lists and as names.
func TestWhatIsMarshalledIsWhatCUEWrites(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ name, path string }{{"json.Marshal", "encoding/json"}, {"yaml.Marshal", "encoding/yaml"}} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			ctx := cuecontext.New()
			base := ctx.CompileString("import \"" + of.path + "\"\na: _\nx: " + of.name + "(a)")
			answers := 0
			for _, v := range slices.Concat(someTexts, moreTexts, someIntegers, []any{true, false, nil, int64(math.MaxInt64)}) {
				trees := []*Node{
					Reference("v"),
					Object([]string{"b", "a"}, []*Node{Reference("v"), List([]*Node{Reference("v"), Constant("c"), Object(nil, nil)})}),
					List([]*Node{List(nil), Object([]string{"z", "y"}, []*Node{Constant(int64(1)), Reference("v")})}),
				}
				if s, ok := v.(string); ok {
					trees = append(trees, Object([]string{s}, []*Node{Constant("x")}))
				}
				for i, tree := range trees {
					answers += compareMarshalled(t, of.name, base, tree, i, v)
				}
			}
			if answers == 0 {
				t.Error("there was never an answer")
			}
			t.Log(answers, "answers")
		})
	}
}

// compareMarshalled compares what a tree of some form is as text with that of CUE, and returns how many
// answers there were.
func compareMarshalled(t *testing.T, name string, base cue.Value, tree *Node, as int, v any) int {
	t.Helper()
	got, err := must(t, name, tree).Eval(map[string]any{"v": v})
	if err != nil {
		return 0
	}
	text := []string{"v", "{b: v, a: [v, \"c\", {}]}", "[[], {z: 1, y: v}]", "{(v): \"x\"}"}[as]
	data := cuecontext.New().CompileString("v: _\nout: "+text).FillPath(cue.ParsePath("v"), cuecontext.New().BuildExpr(literalOf(v)))
	want, err := base.FillPath(cue.ParsePath("a"), data.LookupPath(cue.ParsePath("out"))).LookupPath(cue.ParsePath("x")).String()
	if err != nil || want != got {
		t.Errorf("%q as %s: it is %q, and CUE says %q, %v", v, text, got, want, err)
	}
	return 1
}
