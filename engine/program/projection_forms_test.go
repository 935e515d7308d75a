package program_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// readers are expressions that read X in part.
var readers = []string{
	`[for c in X if c.type == "A" {c.status}]`,
	`len([for c in X if (*c.type | "") == "A" {c}])`,
	`len([for c in *X | [] {c}])`,
	`len(X)`,
	`len(*X | {})`,
	`len(X[0])`,
	`[if X != _|_ {1}, 0][0]`,
	`X == _|_`,
	`X[0].type`,
	`X["a"].type`,
	`X.a.type`,
	`*X[0].type | "none"`,
	`*X[0].list[0].n | X[1].type`,
	`[for k, _ in X {k}]`,
	`[for k, v in X {"\(k)-\(v.type)"}]`,
	`{for k, v in X {"\(k)": t: v.type}}`,
	`{for c in X {(c.type): c.status}}`,
	`[for c in *X | [] {*c.type | "x"}]`,
	`[for c in X for d in c.list {d.n}]`,
	`[for c in X {len(c.list)}]`,
	`[for c in X let t = c.type if t != "A" {t}]`,
	`[for c in X {c.a.b}]`,
	`[for c in X if c.list != _|_ {1}]`,
	`[for c in X if c.list == _|_ {1}]`,
	`[for c in X {c[cr.metadata.name]}]`,
	`[for c in X {c["ty\("pe")"]}]`,
	`[for c in X {c.type + 1}]`,
	`and([for c in X {c.ok}])`,
	`true & or([for c in X {c.ok}])`,
	`list.Contains([for c in X {c.type}], "A")`,
	`list.Max([for c in X {c.n}])`,
	`[for c in X {c.type}] == ["A"]`,
	`strings.Join([for c in X {c.type}], ",")`,
	`json.Marshal([for c in X {{t: c.type}}])`,
}

// values are what X may be, as JSON.
var values = []string{
	`[{"type":"A","status":"True","time":"1","list":[{"n":1,"m":2},{"n":2}],"ok":true,"n":3}]`,
	`[{"type":"A","status":"True"},{"type":"B","corner":"x","a":{"b":1,"c":2},"list":[]},{"time":5}]`,
	`[{"type":null},{"type":{"x":1}},{"type":["A"]}]`, `[{"type":1.5,"ok":false,"n":1e30}]`,
	`[{"a":{"b":1,"c":2},"type":"A","n":1,"ok":true}]`, `[null,{"type":"A"}]`, `["A",{"type":"A","time":1}]`, `[["A",{"type":"A"}]]`, `["A","B"]`, `[1,2.0]`, `[[]]`, `[{}]`, `[]`,
	`{"a":{"type":"A","time":1,"list":[{"n":1}]},"b":{"status":"x"}}`, `{"a":"A","type":"A"}`, `{"a":[{"type":"A","time":1}]}`, `{}`,
	`"A"`, `5`, `null`, `true`,
}

// Of what is left out of a view, no evaluation may tell.
func TestWhatIsNotPartOfAViewChangesNoAnswer(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for _, reader := range readers {
		t.Run(reader, func(t *testing.T) {
			t.Parallel()
			e := strings.ReplaceAll(reader, "X", "live.web.d.x")
			text := fmt.Sprintf("status: n: %s\ncomponents: web: {objects: d: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"d\", data: n: \"\\(len([%s]))\"}, verify: it: len([%s]) > 0, outputs: n: %s}", e, e, e, e)
			p, err := program.Load(inline.Snapshot(t, imported+text))
			if err != nil {
				t.Fatal(err)
			}
			left := 0
			for _, value := range append(values, "") {
				s := session(t, `{}`, `{}`)
				if object := map[string]any{"kind": "ConfigMap"}; value != "" {
					var x any
					if err := utiljson.Unmarshal([]byte(value), &x); err != nil {
						t.Fatal(err)
					}
					object["x"] = x
					s.Live = map[string]map[string]map[string]any{"web": {"d": object}}
				}
				want, got := saying(t, p.Unprojected(), s), saying(t, p, s)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("x: %s (-all +view):\n%s", value, diff)
				}
				if p.Views().Of(s).Whole() != p.Unprojected().Views().Of(s).Whole() {
					left++
				}
			}
			if left == 0 {
				t.Error("nothing is left out")
			}
		})
	}
}

// imported is head with what readers call.
var imported = strings.Replace(head, "import ", "import \"list\"\nimport \"strings\"\nimport \"encoding/json\"\nimport ", 1) +
	"_uses: [list.Max([1]), strings.ToLower(\"a\"), json.Marshal(1)]\n"

// saying returns what a package says of a session, as text.
func saying(t *testing.T, p *program.Program, s program.Session) string {
	t.Helper()
	r, err := p.Evaluate(s)
	if problem, ok := errors.AsType[*program.PanicError](err); ok {
		t.Fatal(problem)
	}
	text, failed := json.MarshalIndent(r, "", " ")
	if failed != nil {
		t.Fatal(failed)
	}
	return fmt.Sprintf("%s\n%v", text, err)
}
