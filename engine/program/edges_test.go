package program_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program"
)

// branches are packages in which the component web, or the components of a loop, refer
// to the component db under a condition, and who depends on it for which resource.
var branches = map[string]struct {
	reason string
	text   string
	spec   string
	live   string
	want   []string
}{
	"an if that does not hold": {
		"what an evaluation does not come to is no dependency",
		`components: web: outputs: {if cr.spec.size > 3 {x: live.db.cm.data.x}}`, `{size: 2}`, "", nil,
	},
	"an if that holds": {
		"and what it comes to is one",
		`components: web: outputs: {if cr.spec.size > 3 {x: live.db.cm.data.x}}`, `{size: 4}`, "", []string{"web"},
	},
	"one of two elements of a list": {
		"the usual way to write one or the other",
		`components: web: outputs: x: [if cr.spec.size > 3 {live.db.cm.data.x}, "none"][0]`, `{size: 2}`, "", nil,
	},
	"an absent field": {
		"the usual way to switch something on",
		`components: web: outputs: {if cr.spec.name != _|_ {x: components.db.outputs.x}}`, `{}`, "", nil,
	},
	"a field that is there": {
		"",
		`components: web: outputs: {if cr.spec.name != _|_ {x: components.db.outputs.x}}`, `{name: "a"}`, "", []string{"web"},
	},
	"a reference behind a let": {
		"a let is nothing until it is used",
		"components: web: {\n\tlet h = components.db.outputs.x\n\toutputs: {if cr.spec.size > 3 {x: h}}\n}", `{size: 2}`, "", nil,
	},
	"a condition behind a let": {
		"a name for a condition is no other one",
		"components: web: {\n\tlet big = cr.spec.size > 3\n\toutputs: {if big {x: live.db.cm.data.x}}\n}", `{size: 2}`, "", nil,
	},
	"a condition behind a hidden field": {
		"",
		"_big: cr.spec.size > 3\ncomponents: web: outputs: {if _big {x: live.db.cm.data.x}}", `{size: 2}`, "", nil,
	},
	"two conditions, one in the other": {
		"both have to hold",
		`components: web: outputs: {if cr.spec.size > 1 {if cr.spec.size > 3 {x: live.db.cm.data.x}}}`, `{size: 2}`, "", nil,
	},
	"two uses, of which one always is": {
		"one use is enough",
		`components: web: outputs: {if cr.spec.size > 3 {x: live.db.cm.data.x}, y: live.db.cm.data.y}`, `{size: 2}`, "", []string{"web"},
	},
	"two uses under two conditions": {
		"one of them is enough",
		`components: web: outputs: {if cr.spec.size > 3 {x: live.db.cm.data.x}, if cr.spec.size < 3 {y: live.db.cm.data.y}}`, `{size: 2}`, "", []string{"web"},
	},
	"the condition itself": {
		"what decides is used, whatever comes of it",
		`components: web: outputs: {if live.db.cm.data.x == "y" {x: 1}}`, `{size: 2}`, "", []string{"web"},
	},
	"a condition that is not decided yet": {
		"it may be all that holds a change back",
		`components: web: outputs: {if live.other.cm.data.x == "y" {x: live.db.cm.data.x}}`, `{size: 2}`, "", []string{"web"},
	},
	"a condition that a live object decides": {
		"",
		`components: web: outputs: {if live.other.cm.data.x == "y" {x: live.db.cm.data.x}}`, `{size: 2}`, `{other: {cm: {data: {x: "z"}}}}`, nil,
	},
	"a function": {
		"what CUE has may be used in a condition",
		`components: web: outputs: {if len(cr.spec.pools) > 1 {x: live.db.cm.data.x}}`, `{pools: {a: 1}}`, "", nil,
	},
	"a loop over nothing": {
		"what is in it is not there",
		`components: web: outputs: {for k, v in *cr.spec.pools | {} {"\(k)": live.db.cm.data.x}}`, `{}`, "", nil,
	},
	"a loop over something": {
		"",
		`components: web: outputs: {for k, v in cr.spec.pools if v > 1 {"\(k)": live.db.cm.data.x}}`, `{pools: {a: 1, b: 2}}`, "", []string{"web"},
	},
	"components of a loop, each under its own condition": {
		"one that needs nothing is not held by what another one needs",
		`components: {for k, v in cr.spec.pools {"p-\(k)": outputs: {if v > 1 {x: live.db.cm.data.x}}}}`, `{pools: {a: 1, b: 2}}`, "", []string{"p-b"},
	},
	"components of a loop with a let": {
		"",
		"components: {for k, v in cr.spec.pools {\n\tlet name = \"p-\\(k)\"\n\tlet big = v > 1\n\t(name): outputs: {if big {x: live.db.cm.data.x}}}}", `{pools: {a: 1, b: 2}}`, "", []string{"p-b"},
	},
	"a reference to a component beside a loop": {
		"what the components of the loop refer to is none of it",
		"components: {\n\tweb: outputs: x: components.quiet.outputs.x\n\tquiet: outputs: x: 1\n\tfor k, v in cr.spec.pools {\"p-\\(k)\": outputs: {if v > 1 {x: components.db.outputs.x}}}}", `{pools: {a: 1, b: 2}}`, "", []string{"p-b"},
	},
	"a reference to a component that a loop may make": {
		"what that may refer to counts",
		"components: {\n\tweb: outputs: x: components.\"p-a\".outputs.x\n\tfor k, v in cr.spec.pools {\"p-\\(k)\": outputs: x: components.db.outputs.x}}", `{pools: {a: 1}}`, "", []string{"web", "p-a"},
	},
	"components of two loops": {
		"the references of one are none of the other's",
		`components: {for k, v in cr.spec.pools {"p-\(k)": outputs: x: live.db.cm.data.x, "q-\(k)": outputs: x: k}}`, `{pools: {a: 1}}`, "", []string{"p-a"},
	},
	"a template with a parameter": {
		"the parameter of each use decides for it",
		"#App: {\n\t#db: bool\n\toutputs: {if #db {x: live.db.cm.data.x}}\n}\ncomponents: web: #App & {#db: cr.spec.size > 3}\ncomponents: shop: #App & {#db: true}", `{size: 2}`, "", []string{"shop"},
	},
	"a template in a loop": {
		"",
		"#App: {\n\t#pool: int\n\toutputs: {if #pool > 1 {x: live.db.cm.data.x}}\n}\ncomponents: {for k, v in cr.spec.pools {\"p-\\(k)\": #App & {#pool: v}}}", `{pools: {a: 1, b: 2}}`, "", []string{"p-b"},
	},
	"a template of an object with a parameter": {
		"it has its own place",
		"#Map: {\n\t#db: bool\n\tapiVersion: \"v1\"\n\tkind: \"ConfigMap\"\n\tmetadata: name: \"x\"\n\tdata: {if #db {x: live.db.cm.data.x}}\n}\ncomponents: web: objects: {a: #Map & {#db: false}}\ncomponents: shop: objects: {a: #Map & {#db: false}, b: #Map & {#db: true}}", `{}`, "", []string{"shop"},
	},
	"a template within itself": {
		"what cannot be told apart keeps the edge",
		"#T: {\n\t#db: bool\n\tx?: #T\n\tif #db {y: live.db.cm.data.x}\n}\ncomponents: web: outputs: t: #T & {#db: false}", `{}`, "", []string{"web"},
	},
	"a name of the loop that is a field of the root": {
		"it means the loop's",
		`components: {for kind, v in cr.spec.pools {"p-\(kind)": outputs: {if kind == "Shop" {x: live.db.cm.data.x}}}}`, `{pools: {a: 1}}`, "", nil,
	},
	"a field beside it that is named as one of the root": {
		"it means the one beside it",
		"components: web: outputs: {\n\tkind: \"x\"\n\tif kind == \"Shop\" {x: live.db.cm.data.x}\n}", `{}`, "", nil,
	},
}

func TestAReferenceIsAnEdgeWhereItIsUsed(t *testing.T) {
	t.Parallel()
	const others = "\ncomponents: db: objects: cm: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"db\"}\ncomponents: db: outputs: x: \"y\"\ncomponents: other: {}\n"
	for name, c := range branches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, c.text+others)
			r := evaluate(t, p, session(t, c.spec, c.live))
			if diff := cmp.Diff(c.want, dependents(r, "db")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// dependents returns the components of a rollout that have an edge to another one.
func dependents(r program.Rollout, to string) []string {
	var out []string
	for _, c := range r.Components {
		for _, e := range c.Edges {
			if e.To == to {
				out = append(out, c.Name)
			}
		}
	}
	return out
}

// TestTheTextHasTheEdgesOfEveryBranch: what a package is drawn and vetted by has to
// include what another resource would use, with the condition.
func TestTheTextHasTheEdgesOfEveryBranch(t *testing.T) {
	t.Parallel()
	p := compile(t, `
components: {
	db: outputs: x: "y"
	web: outputs: {if cr.spec.size > 3 {x: components.db.outputs.x}, y: *live.base.cm.data.x | ""}
	base: {}
}`)
	var got []string
	for _, c := range p.Template() {
		for _, e := range c.Edges {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s > %s %s", c.Name, e.To, e.If)))
		}
	}
	if diff := cmp.Diff([]string{"web > db cr.spec.size > 3", "web > base"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestConditionsOfEdgesAreDecidedSideBySide runs evaluations of one program at once:
// each asks about its own resource.
func TestConditionsOfEdgesAreDecidedSideBySide(t *testing.T) {
	t.Parallel()
	p := compile(t, `components: {for k, v in cr.spec.pools {"p-\(k)": outputs: {if v > 1 {x: live.db.cm.data.x}}}}
components: db: {}`)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for range 20 {
				r, err := p.Evaluate(session(t, fmt.Sprintf("{pools: {a: 1, n%d: 2}}", i), ""))
				if err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff([]string{fmt.Sprintf("p-n%d", i)}, dependents(r, "db")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	group.Wait()
}
