package syntax_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program/syntax"
	"operetta.dev/test/inline"
)

// What a part rests on must never be too little, however a package refers to it.
func TestAPartRestsOnWhatItsTextLeadsTo(t *testing.T) {
	t.Parallel()
	const a, b = "components: a: objects: o: data: x: ", "\ncomponents: b: objects: o: data: y: live.b.o.y\n"
	for name, row := range map[string]struct {
		text    string
		want    string // what components.a reads, or nothing if there are no parts
		related bool
		reason  string
	}{
		"itself":                            {text: a + "live.a.o.x" + b, want: "live.a.o.x", reason: "its text mentions nothing else"},
		"a component on the same line":      {text: `components: {a: objects: o: data: x: live.a.o.x, b: objects: o: data: y: live.b.o.y}`, want: "live.a.o.x", reason: "a block is no line"},
		"another component":                 {text: a + "components.b.objects.o.data.y" + b, want: "live.b.o.y", reason: "what it reads decides"},
		"a component beside it":             {text: "components: {a: objects: o: data: x: b.objects.o.data.y\n" + "b: objects: o: data: y: live.b.o.y}", want: "live.b.o.y", reason: "a name without a path is one of a component, too"},
		"any component":                     {text: a + "len(components)" + b, want: "live.b.o.y", reason: "it may be any"},
		"a hidden field":                    {text: "_h: {g: _g}\n_g: live.c.o.z\n" + a + "_h.g" + b, want: "live.c.o.z", reason: "a name leads to a name"},
		"a let":                             {text: "let L = live.c.o.z\n" + a + "L" + b, want: "live.c.o.z", reason: "a let has a name"},
		"a let beside the components":       {text: "components: {let L = live.c.o.z\na: objects: o: data: x: L\nb: objects: o: data: y: live.b.o.y}", want: "live.c.o.z", reason: "it is in no block of its own"},
		"a pattern":                         {text: "components: [string]: timeout: live.c.o.z\n" + a + "1" + b, want: "live.c.o.z", reason: "it is about all components"},
		"a condition around it":             {text: "if live.c.o.z {components: a: objects: o: data: x: 1}" + b, want: "live.c.o.z", reason: "it decides whether there is one"},
		"a condition around a hidden field": {text: "if live.c.o.z {_h: 1}\n" + a + "1" + b, want: "live.c.o.z", reason: "it is in no block of its own"},
		"the parameter of a definition":     {text: "#D: {#p: _, x: #p}\n#p: live.c.o.z\n" + a + "(#D & {#p: 1}).x" + b, want: "live.c.o.z", reason: "a label of that name sets it"},
		"an input":                          {text: `inputs: i: {apiVersion: "v1", kind: "ConfigMap", name: live.c.o.z}` + "\n" + a + "inputs.i.object.data.x" + b, want: "inputs.i.object.data.x live.c.o.z", reason: "what it selects decides what is found"},
		"the status":                        {text: "status: s: live.c.o.z\n" + a + "status.s" + b, want: "live.c.o.z", reason: "it may be referred to"},
		"an alias of all components":        {text: "components: X={a: objects: o: data: x: X.b.objects.o.data.y\nb: objects: o: data: y: live.b.o.y}", want: "", reason: "all components are in no block of their own then, and part of the frame"},
		"an alias of a component":           {text: "components: {X=b: objects: o: data: y: live.b.o.y\na: objects: o: data: x: X.objects.o.data.y}", want: "live.b.o.y", reason: "the component with the alias is in no block of its own"},
		"components from elsewhere":         {text: "_c: {b: objects: o: data: y: live.b.o.y}\ncomponents: _c\n" + a + "live.a.o.x", reason: "the text does not show what there is"},
		"a default of another field":        {text: "cr: spec: {n: int, if n > 1 {m: *1 | int}}\n" + a + "1" + b, related: true, want: "", reason: "what n is decides what m is"},
		"a default in alternatives":         {text: "cr: spec: {k: \"a\", n: *1 | int} | {k: \"b\", n: *2 | int}\n" + a + "1" + b, related: true, want: "", reason: "what k is decides what n is"},
		"a default for itself":              {text: "cr: spec: {n: int & >0 | *1, t: strings.MaxRunes(3) | *\"x\"}\n" + a + "1" + b, want: "", reason: "each field has its own"},
		"a condition around a schema":       {text: "if live.c.o.z {cr: spec: m: *1 | int}\n" + a + "1" + b, related: true, want: "live.c.o.z", reason: "it decides about the default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := syntax.PartsOf(inline.Program(t, partsHead+row.text).Syntax())
			got := map[string]bool{}
			for _, r := range parts.Readings("components.a") {
				got[strings.Join(r.Path, ".")] = true
			}
			for path := range strings.FieldsSeq(row.want) {
				if !got[path] {
					t.Errorf("it does not rest on %s, but on %v: %s", path, got, row.reason)
				}
			}
			if row.want == "live.a.o.x" && len(got) > 1 {
				t.Errorf("it rests on %v: %s", got, row.reason)
			}
			if none := strings.HasPrefix(row.reason, "the text does not show"); none != !slices.Contains(parts.Names(), "") {
				t.Errorf("the parts are %q: %s", parts.Names(), row.reason)
			}
			if diff := cmp.Diff(row.related, parts.RelatesFields()); diff != "" {
				t.Errorf("the schema relates fields (-want +got): %s", diff)
			}
		})
	}
}

const partsHead = `package shop

import (
	"strings"

	"operetta.dev/schemas/operator"
)

operator.#Controller

_used: strings.ToUpper("x")
group: "shop.example"
kind:  "Shop"
versions: v1: spec: _
live: _
`
