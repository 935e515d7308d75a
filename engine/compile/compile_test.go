package compile_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// shop is the beginning of every package here.
const shop = `package shop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"list"
	"strings"

	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
_used: [sha256, hex, json, list, strings]
#Spec: {size: int & >=1 & <=90 | *2, name?: string & strings.MaxRunes(200), mode: *"a" | string, on: bool | *false, pools?: [string]: int, hosts?: [...string], ports?: [...{n: int, t?: string}], pin?: string, team: tier: *"gold" | string}
`

// load loads a package that is shop and more. A component web has one ConfigMap that more may
// add to by in.
func load(t testing.TB, in, more string) *program.Program {
	t.Helper()
	text := fmt.Sprintf("%s\ncomponents: web: objects: map: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: cr.metadata.name\n%s\n}\n%s", strings.Replace(shop, "_used: [sha256, hex, json, list, strings]\n", "_used: {a: sha256.Sum256(\"\"), b: hex.Encode(\"\"), c: json.Marshal(1), d: list.Max([1]), e: strings.ToUpper(\"\")}\n", 1), in, more)
	return inline.Program(t, text)
}

// sessions are some of the shop: with all fields and with few, with live objects and without.
func sessions(t testing.TB) []program.Session {
	t.Helper()
	var out []program.Session
	for i := range 4 {
		for _, live := range []bool{false, true} {
			var s program.Session
			name := fmt.Sprintf("w-%d", i)
			inline.Decode(t, fmt.Sprintf("{apiVersion: shop.example/v1, kind: Shop, metadata: {name: n%d, namespace: town, uid: u%d}, spec: {size: %d, name: %s, mode: %s, 'on': %v, pools: {a: %d, b: 2}, hosts: [h1, h%d], ports: [{'n': %d, t: x%d}, {'n': 3}], pin: '12%d'}}",
				i, i, i+1, name, []string{"a", "b"}[i%2], i%2 == 0, i, i, i, i, i), &s.CR)
			if live {
				inline.Decode(t, fmt.Sprintf("web: {map: {apiVersion: v1, kind: ConfigMap, metadata: {name: n%d}, data: {a: %s, 'n': %d, conditions: [{type: Ready, status: '%s'}]}}}", i, []string{"x", name}[i%2], i, []string{"True", "False"}[i%2]), &s.Live)
			}
			out = append(out, s)
		}
	}
	return out
}

// forms are what packages say, with the values that are part of the shape for it.
var forms = []struct{ reason, in, more, pins string }{
	{"a reference", `data: a: cr.spec.name`, ``, ``},
	{"a text with references", `data: a: "x-\(cr.spec.name)-\(cr.spec.size)-\(cr.spec.on)"`, ``, ``},
	{"a text of several lines", "data: a: \"\"\"\n\tx \\(cr.spec.name)\n\ty\n\t\"\"\"", ``, ``},
	{"a raw text", `data: a: #"x\#(cr.spec.name)\n"#`, ``, ``},
	{"arithmetic", `data: a: "\(cr.spec.size*2+1)"`, ``, ``},
	{"functions", `data: {a: strings.ToUpper(cr.spec.name), b: hex.Encode(sha256.Sum256(json.Marshal(cr.spec.pools))), c: strings.Join(cr.spec.hosts, ","), d: "\(len(cr.spec.name))"}`, ``, ``},
	{"a loop", `data: {for k, v in cr.spec.pools {"p-\(k)": "\(v)"}}`, ``, ``},
	{"a list of structs", `x: [for p in cr.spec.ports {containerPort: p.n, if p.t != _|_ {name: p.t}}]`, ``, `cr.spec.ports.[].t`},
	{"a condition on a flag", `if cr.spec.on {data: a: cr.spec.name}`, ``, ``},
	{"a condition on a number", `if cr.spec.size > 2 {data: a: cr.spec.name}`, ``, `if(cr.spec.size)`},
	{"a condition on a text by another name", `if _first {data: a: cr.spec.name}`, `_first: strings.HasPrefix(cr.spec.name, "w-1")`, `if(cr.spec.name)`},
	{"an index that is a value", `data: a: ["x", "y", "z", "u", "v", "w"][cr.spec.size]`, ``, `cr.spec.size`},
	{"a text of a list by its index", `data: a: strings.Split(cr.spec.name, "-")[0]`, ``, ``},
	{"a struct by its name", `data: {a: {b: "x"}, b: {b: "y"}}[cr.spec.mode]`, ``, `cr.spec.mode`},
	{"a quotient", `data: {a: "\(cr.spec.size/4)", b: "\(cr.spec.size*0.5)"}, x: cr.spec.size / 2`, ``, ``},
	{"a let with an expression", `let N = "n-\(cr.spec.name)", data: {a: N, b: "\(N)!"}`, ``, ``},
	{"lets of a loop", `data: {for k, v in cr.spec.pools let W = v*2 {let N = "n-\(k)-\(W)", (k): N}}`, ``, `cr.spec.pools.a cr.spec.pools.b`},
	{"a condition on what there is", `if cr.spec.name != _|_ {data: a: cr.spec.name}`, ``, ``},
	{"a choice from a list", `data: a: [if cr.spec.size > 2 {"big"}, "small"][0]`, ``, `if(cr.spec.size)`},
	{"a default for what is missing", `data: a: *live.web.map.data.z | "none"`, ``, ``},
	{"a default that takes the place of a hole", `data: {a: _m, b: "\(_m)"}`, "_m: *\"a\" | string\n_m: cr.spec.mode", ``},
	{"such a default in a condition", `if _m == "a" {data: a: "x"}`, "_m: *\"a\" | string\n_m: cr.spec.mode", `cr.spec.mode`},
	{"a definition with a parameter", `data: a: (#F & {in: cr.spec.mode}).out`, `#F: {in: *"a" | string, out: "f-\(in)"}`, ``},
	{"a value that decides within a definition", `data: a: (#F & {in: cr.spec.mode}).out`, `#F: {in: *"a" | string, out: [if in == "a" {"first"}, "second"][0]}`, `cr.spec.mode`},
	{"two values in one place", `data: {a: cr.spec.name, b: cr.spec.mode & ("a" | "b")}`, ``, ``},
	{"a bound", `x: cr.spec.size & <3`, ``, ``},
	{"a bound that rests on a value", `x: cr.spec.size & <=(cr.spec.ports[0].n + 1)`, ``, ``},
	{"an assertion in a hidden field", `_ok: true & (cr.spec.size < 4)`, ``, ``},
	{"a choice of structs", `{#A | #B} & {t: cr.spec.mode}`, "#A: {t: \"a\", x: 1, ...}\n#B: {t: \"b\", y: 2, ...}", `cr.metadata.name cr.spec.mode cr.spec.ports.[].t`},
	{"predicates", ``, `components: web: {when: cr.spec.on, verify: {a: live.web.map.data.n >= cr.spec.size, b: live.web.map.data.a == cr.spec.name && cr.spec.size > 1}, failed: c: live.web.map.data.a == "x", requires: d: cr.spec.mode == "b"}`, ``},
	{"a condition of a live object", ``, `components: web: verify: ok: list.Contains([for c in live.web.map.data.conditions if c.type == "Ready" {c.status}], "True")`, `live.web.map.data.conditions.[].type`},
	{"outputs and edges", ``, "components: {web: outputs: o: \"h-\\(live.web.map.data.a)\"\nnext: {dependsOn: web: check: cr.spec.size > 2\nobjects: map: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"next-\\(cr.metadata.name)\", data: v: components.web.outputs.o}}}", ``},
	{"hooks", ``, `hooks: afterVerify: h: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name}`, ``},
	{"status", ``, `status: {s: cr.spec.size, t: *live.web.map.data.n | 0, u: "\(cr.spec.name)-\(live.web.map.data.z)"}`, ``},
	{"an input", `data: a: inputs.i.object.data.x`, `inputs: i: {apiVersion: "v1", kind: "ConfigMap", name: cr.spec.name}`, `cr.metadata.namespace cr.spec.name`},
	{"a timeout", ``, `components: web: timeout: "\(cr.spec.size)s"`, ``},
	{"components by key", ``, `components: {for k, v in cr.spec.pools {"p-\(k)": objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: k, data: n: "\(v)"}}}`, ``},
	{"a Secret from the spec", ``, `components: web: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: cr.metadata.name, stringData: pin: cr.spec.name}`, ``},
}

func TestFormsGiveWhatCUEDoes(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for _, form := range forms {
		t.Run(form.reason, func(t *testing.T) {
			t.Parallel()
			p := load(t, form.in, form.more)
			for _, order := range []func([]program.Session){func([]program.Session) {}, slices.Reverse[[]program.Session]} {
				x, r := newTested(p), rand.New(rand.NewSource(1))
				all := sessions(t)
				order(all)
				for _, s := range all {
					x.compare(t, s)
					x.compare(t, variedSession(r, s))
				}
				if diff := cmp.Diff(form.pins, x.pinned()); diff != "" {
					t.Errorf("pins (-want +got):\n%s", diff)
				}
				if x.hits == 0 {
					t.Error("no template has an answer")
				}
			}
		})
	}
}

// pinned returns the pins besides those of each package.
func (x *tested) pinned() string {
	var out []string
	for _, path := range x.pins.Paths() {
		if len(path) > 1 {
			out = append(out, strings.Join(path, "."))
		}
	}
	for _, c := range x.pins.Conditions() {
		for _, path := range c.References() {
			out = append(out, "if("+strings.Join(path, ".")+")")
		}
	}
	return strings.Join(out, " ")
}

// A message that rests on a secret has another form for each, or none: the template must not have one
// that shows what another session has, nor show what CUE's evaluation hides.
func TestWhatRestsOnASecretIsNotTranslated(t *testing.T) {
	t.Parallel()
	const read = `inputs: s: {apiVersion: "v1", kind: "Secret", name: "s"}` + "\n"
	rows := []struct{ reason, in, more string }{
		{"a predicate", ``, read + `components: web: verify: ok: inputs.s.object.stringData.pin == cr.spec.name`},
		{"a predicate by way of a hidden field", ``, read + "components: web: verify: ok: _pin == \"1\"\n_pin: inputs.s.object.stringData.pin"},
		{"when", ``, read + `components: web: when: inputs.s.object.stringData.pin =~ "^12"`},
		{"a bound on content", `data: x: inputs.s.object.stringData.pin & =~"^.24"`, read + `components: web: verify: never: live.web.map.data.x == "y"`},
		{"a condition of content", `if cr.spec.pin =~ "^120" {data: a: "x"}`, `components: web: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: cr.metadata.name, stringData: pin: cr.spec.pin}`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			x := newTested(load(t, row.in, row.more))
			for i, s := range sessions(t) {
				secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "uid": "u"}, "stringData": map[string]any{"pin": strconv.Itoa(i%3) + "24"}}
				s.Inputs = map[string]program.FoundInput{"s": {Objects: []map[string]any{secret}}}
				x.compare(t, s)
			}
			if x.hits > 0 || x.rejected == 0 {
				t.Errorf("%d sessions had a template", x.hits)
			}
		})
	}
}

func TestAFaultySessionSaysNothingOfItsShape(t *testing.T) {
	t.Parallel()
	p := load(t, `x: cr.spec.size & <3`, "")
	s := sessions(t)[7]
	c := compile.New(p)
	r := c.Compile(s, c.Pins())
	if len(r.Rollout.Components) == 0 {
		t.Fatal(r.Err, r.Rollout.Invalid)
	}
	if r.Template != nil || len(r.Untranslated) > 0 || len(r.Rollout.Components[0].Faults) == 0 {
		t.Errorf("template %v, reasons %v, faults %v", r.Template, r.Untranslated, r.Rollout.Components[0].Faults)
	}
}

// TestManyObjectsHaveNoTemplate: it would take seconds to make one of a thousand, and no resource that has
// another number of them could use it.
func TestManyObjectsHaveNoTemplate(t *testing.T) {
	t.Parallel()
	p := load(t, "", `components: many: objects: {for i in list.Range(0, cr.spec.size, 1) {"o\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "o\(i)"}}}`)
	for size, want := range map[int64]bool{2: true, 90: true} {
		expectTemplate(t, p, size, want)
	}
	more := load(t, "", `components: many: objects: {for i in list.Range(0, cr.spec.size, 1) for k in ["a", "b"] {"\(k)\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(k)\(i)"}}}`)
	for size, want := range map[int64]bool{2: true, 90: false} {
		expectTemplate(t, more, size, want)
	}
}

// expectTemplate expects that there is a template for a session of a size, or a reason that is remembered.
func expectTemplate(t *testing.T, p *program.Program, size int64, want bool) {
	t.Helper()
	s := sessions(t)[0]
	spec, _ := s.CR["spec"].(map[string]any)
	spec["size"] = size
	c := compile.New(p)
	r := c.Compile(s, c.Pins())
	switch {
	case r.Err != nil || (r.Template != nil) != want:
		t.Errorf("size %d: there is a template: %v, want %v (%v, error %v)", size, r.Template != nil, want, r.Untranslated, r.Err)
	case !want && (r.Inconclusive || len(r.Untranslated) != 1 || len(r.Rollout.Components) != 2):
		t.Errorf("size %d: the next session of the shape is compiled again: %v", size, r.Untranslated)
	}
}
