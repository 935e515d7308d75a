package evaluate_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// oneShapeHead is the beginning of the packages of TestAValueThatBreaksWhatATemplateWasMadeFromIsSeen.
const oneShapeHead = `package shop

%s
import "operetta.dev/schemas/operator"
operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
#Spec: %s
`

const oneShapeMap = `components: web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name}
`

// The first session of each package makes the template. The others have the same shape, and a value that
// breaks a condition, or an operation, that the first one meets.
func TestAValueThatBreaksWhatATemplateWasMadeFromIsSeen(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1100)
	const modes, ranges, counts = `[{"mode":"single","replicas":1},{"mode":"ha","replicas":1}]`, `[{"lo":1,"hi":2},{"lo":3,"hi":2}]`, `[{"n":2},{"n":0}]`
	const bounded, count = `{lo: int & >=0 & <=100, hi: int & >=0 & <=100}`, `{n: int & >=0 & <=9}`
	for name, c := range map[string]struct{ imports, schema, body, specs string }{
		"a condition of the schema": {
			schema: `{mode: string, replicas: int, if mode == "ha" {replicas: >=3}}`,
			body:   `components: web: objects: cm: data: a: "\(cr.spec.replicas)"`, specs: modes,
		},
		"a condition of the schema among bounds": {
			schema: `{mode: =~"^[a-z]+$", replicas: int & >=0 & <=10, if mode == "ha" {replicas: >=3}}`,
			body:   `components: web: objects: cm: data: a: "\(cr.spec.replicas)"`, specs: modes,
		},
		"a condition further down": {
			schema: `{web: {mode: =~"^[a-z]+$", replicas: int & >=0 & <=10, if mode == "ha" {replicas: >=3}}}`,
			body:   `components: web: objects: cm: data: a: "\(cr.spec.web.replicas)"`, specs: `[{"web":{"mode":"single","replicas":1}},{"web":{"mode":"ha","replicas":1}}]`,
		},
		"a hidden field of the schema":           {schema: `{lo: int, hi: int, _ok: true & (lo <= hi)}`, specs: ranges},
		"a hidden field among bounds":            {schema: `{lo: int & >=0 & <=100, hi: int & >=0 & <=100, _ok: true & (lo <= hi)}`, specs: ranges},
		"a bound that is another field":          {schema: `{lo: int & >=0 & <=100, hi: int & >=lo}`, specs: ranges},
		"a hidden field under a condition":       {schema: `{lo: int & >=0 & <=100, hi: int & >=0 & <=100, if lo > hi {_bad: "x" & "lo above hi"}}`, specs: ranges},
		"elements that differ":                   {imports: `import "list"`, schema: `{hosts: [...=~"^[a-z]+$"] & list.UniqueItems()}`, specs: `[{"hosts":["a","b"]},{"hosts":["a","a"]}]`},
		"one of two schemas":                     {schema: `{kind: =~"^[a-z]+$", {kind: "a", n: <5} | {kind: "b", n: >=5}}`, specs: `[{"kind":"a","n":1},{"kind":"b","n":1}]`},
		"a number that is none, while unknown":   {imports: "import \"strconv\"\nimport \"strings\"", schema: `{port: strings.MinRunes(1)}`, body: `components: web: verify: ok: live.web.cm.data.n >= strconv.Atoi(cr.spec.port)`, specs: `[{"port":"80"},{"port":"http"}]`},
		"a division by zero, while unknown":      {schema: count, body: `components: web: verify: ok: live.web.cm.data.n >= div(100, cr.spec.n)`, specs: counts},
		"a division by zero in when":             {schema: count, body: `components: web: when: live.web.cm.data.n >= div(100, cr.spec.n)`, specs: counts},
		"a division by zero in the status":       {schema: count, body: `status: {x: live.web.cm.data.n + div(100, cr.spec.n), y: 1}`, specs: counts},
		"a division by zero in a missing object": {schema: count, body: `components: web: objects: cm: data: a: "\(live.b.cm.data.n)-\(div(100, cr.spec.n))"` + "\n" + `components: b: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}`, specs: counts},
		"a hidden field of a component":          {schema: bounded, body: `components: web: _ok: true & (cr.spec.lo <= cr.spec.hi)`, specs: ranges},
		"a hidden field of the objects":          {schema: bounded, body: `components: web: objects: _ok: true & (cr.spec.lo <= cr.spec.hi)`, specs: ranges},
		"an output":                              {schema: bounded, body: `components: web: outputs: ok: true & (cr.spec.lo <= cr.spec.hi)`, specs: ranges},
		"a definition in an object":              {schema: bounded, body: `components: web: objects: cm: #ok: true & (cr.spec.lo <= cr.spec.hi)`, specs: ranges},
		"the configuration":                      {schema: `{n: int & >=0 & <=100}`, body: `config: max: int & >=cr.spec.n | *5`, specs: `[{"n":1},{"n":7}]`},
		"a text that is too long for templates": {
			imports: `import "strings"`, schema: `{a: string, b: string}`,
			body:  `components: web: objects: cm: data: a: strings.Replace(cr.spec.a, "x", cr.spec.b, -1)`,
			specs: fmt.Sprintf(`[{"a":%[1]q,"b":%[1]q},{"a":"x","b":"y"},{"a":"xz","b":"y"}]`, long),
		},
		"a field whose name is a number": {schema: `{[string]: string}`, body: `components: web: objects: cm: {if cr.spec["80"] == "b" {data: a: "x"}}`, specs: `[{"80":"a"},{"80":"b"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var specs []map[string]any
			if err := json.Unmarshal([]byte(c.specs), &specs); err != nil {
				t.Fatal(err)
			}
			expectWhatCUESays(t, fmt.Sprintf(oneShapeHead, c.imports, c.schema)+oneShapeMap+c.body, specs)
		})
	}
}

// expectWhatCUESays evaluates a package with templates, and by CUE, for one spec after the other.
func expectWhatCUESays(t *testing.T, text string, specs []map[string]any) {
	t.Helper()
	p := inline.Program(t, text)
	clock := time.Unix(0, 0)
	e := evaluate.New(p, evaluate.Options{CheckEvery: 1000, Now: func() time.Time { clock = clock.Add(time.Hour); return clock }})
	for i, spec := range specs {
		s := program.Session{CR: map[string]any{
			"apiVersion": "shop.example/v1", "kind": "Shop", "spec": spec,
			"metadata": map[string]any{"name": fmt.Sprint("n", i), "namespace": "town", "uid": fmt.Sprint("u", i)},
		}}
		want, wantErr := p.Evaluate(s)
		got, gotErr := e.Evaluate(s)
		if !reflect.DeepEqual(want, got) || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
			t.Errorf("session %d: errors %v and %v; (-CUE +template):\n%s", i, wantErr, gotErr, cmp.Diff(want, got))
		}
	}
}
