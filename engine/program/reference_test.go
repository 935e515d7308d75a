package program_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edges are the edges of the component web, as "to:line"; the line is counted from
// the first one of the text.
var edges = map[string]struct {
	reason string
	text   string
	want   []string
}{
	"to a live object": {
		"the object has to be there first",
		`components: web: outputs: x: live.db.sts.metadata.name`, []string{"db:1"},
	},
	"to an output": {
		"outputs are made for that",
		`components: web: outputs: x: components.db.outputs.host`, []string{"db:1"},
	},
	"to the outputs as a whole": {
		"a set of outputs is more than one",
		`components: web: outputs: x: components.db.outputs`, []string{"db:1"},
	},
	"by index notation": {
		"names with a hyphen need it",
		`components: web: outputs: x: live["db"]["sts"].metadata["name"]`, []string{"db:1"},
	},
	"in a guard": {
		"whether the field is there depends on it",
		`components: web: outputs: {if live.db.sts.ready {x: 1}}`, []string{"db:1"},
	},
	"in a guard around the component": {
		"so does the component as a whole",
		"components: {\n\tif live.db.sts.ready {\n\t\tweb: {}\n\t}\n}", []string{"db:2"},
	},
	"in a guard at the root": {
		"wherever it is written",
		"if live.db.sts.ready {\n\tcomponents: web: {}\n}", []string{"db:1"},
	},
	"in when, requires, verify, failed and a check": {
		"every condition is one that waits",
		"components: web: {\n\twhen: live.a.x\n\trequires: r: live.b.x\n\tverify: v: live.c.x\n\tfailed: f: live.d.x\n\tdependsOn: cache: check: live.e.x\n}",
		[]string{"cache:6", "a:2", "b:3", "c:4", "d:5", "e:6"},
	},
	"through a let in the component": {
		"a name for it is no other thing, and nothing until it is used",
		"components: web: {\n\tlet h = components.db.outputs.host\n\toutputs: x: h\n}", []string{"db:3"},
	},
	"through a let for live": {
		"nor is a name for a part of the path",
		"components: web: {\n\tlet l = live\n\toutputs: x: l.db.sts.metadata.name\n}", []string{"db:3"},
	},
	"through a let at the root": {
		"lets at the root are in no component",
		"let h = \"\\(live.db.sts.metadata.name).svc\"\ncomponents: web: outputs: x: h", []string{"db:1"},
	},
	"through a hidden field": {
		"the usual place for shared values",
		"_host: \"\\(live.db.sts.metadata.name).svc\"\ncomponents: web: outputs: x: _host", []string{"db:1"},
	},
	"through several hidden fields": {
		"each is followed; the edge is where the last name for the chain is used",
		"_a: {b: _c}\n_c: live.db.sts\ncomponents: web: outputs: x: _a.b.metadata", []string{"db:1"},
	},
	"through a definition": {
		"shared shapes refer as well",
		"#Base: outputs: x: live.db.sts.metadata.name\ncomponents: web: #Base & {}", []string{"db:1"},
	},
	"through a hidden field for the path": {
		"a prefix may have a name at the root",
		"_objects: live.db\ncomponents: web: outputs: x: _objects.sts.name", []string{"db:2"},
	},
	"by the name of a sibling": {
		"inside components, db is components.db",
		"components: {\n\tdb: outputs: host: \"h\"\n\tweb: outputs: x: db.outputs.host\n}", []string{"db:3"},
	},
	"by the alias of a sibling": {
		"an alias is one more name",
		"components: {\n\tD=db: outputs: host: \"h\"\n\tweb: outputs: x: D.outputs.host\n}", []string{"db:3"},
	},
	"by an alias of live": {
		"what is referred to decides what an evaluation sees",
		"L=live: _\ncomponents: web: outputs: x: L.db.sts.metadata.name", []string{"db:2"},
	},
	"in an argument": {
		"functions and interpolations hide nothing",
		`components: web: outputs: x: "\(len([for o in live.db {o}]))"`, []string{"db:1"},
	},
	"in an index": {
		"what stands in brackets is a reference",
		`components: web: outputs: x: {a: 1}[live.db.sts.key]`, []string{"db:1"},
	},
	"through another component's object": {
		"what the object rests on, this one rests on",
		"components: other: objects: cm: {metadata: name: live.db.sts.name, ...}\ncomponents: web: outputs: x: components.other.objects.cm.metadata.name", []string{"db:1"},
	},
	"by a pattern for all components": {
		"the pattern is part of each",
		"components: [string]: requires: up: live.db.sts.ready\ncomponents: web: {}", []string{"db:1"},
	},
	"once, where it is first": {
		"one edge per component",
		"components: web: outputs: {\n\tx: live.db.sts.a\n\ty: components.db.outputs.host\n}", []string{"db:2"},
	},
	"not beside a declared one": {
		"the author has said it, perhaps with until",
		"components: web: {\n\toutputs: x: live.db.sts.a\n\tdependsOn: db: {}\n}", []string{"db:3"},
	},
	"not to the component itself": {
		"its own objects are no dependency",
		"components: web: {\n\toutputs: {x: live.web.d.a, y: x, z: components.web.outputs.x}\n\tverify: v: outputs.x == \"\"\n}", nil,
	},
	"not to a static part of another one": {
		"what is written there is known without it",
		`components: web: outputs: x: components.db.objects`, nil,
	},
	"not through a field that is not used": {
		"a struct of shared values would otherwise depend on everything",
		"_shared: {a: live.db.sts.x, b: cr.metadata.name}\ncomponents: web: outputs: x: _shared.b", nil,
	},
	"but through all of a struct that is used as a whole": {
		"and then it does",
		"_shared: {a: live.db.sts.x, b: cr.metadata.name}\ncomponents: web: outputs: x: _shared", []string{"db:1"},
	},
	"not of a name that is hidden by another one": {
		"live is not live in a struct that has a live of its own",
		"components: web: outputs: {live: db: 1, x: live.db}", nil,
	},
}

func TestAReferenceIsAnEdge(t *testing.T) {
	t.Parallel()
	const db = "\ncomponents: db: outputs: {host: \"h\", port: 1}\ncomponents: cache: {}\n"
	for name, c := range edges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, c.text+db)
			var got []string
			for _, component := range p.Template() {
				if component.Name != "web" {
					continue
				}
				for _, e := range component.Edges {
					got = append(got, fmt.Sprintf("%s:%d", e.To, e.Position.Line-headLines))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestReferencesAreThoseOfTheText checks that each reference is recorded where it
// is written, once, and as what it stands for.
func TestReferencesAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	p := compile(t, `
let s = cr.spec
_name: cr.metadata.name
components: {
	"db-x": outputs: host: "\(_name)-\(s.size)"
	web: outputs: {
		a: components."db-x".outputs.host
		b: live.web.d[a].c
		c: cr.spec["any"].x
	}
}
if cr.spec.name != _|_ {components: more: {}}
`)
	var got []string
	for _, r := range p.Syntax().References() {
		got = append(got, fmt.Sprintf("%d %s", r.Position.Line-headLines, r))
	}
	want := []string{
		"2 cr.spec",
		"3 cr.metadata.name",
		"5 cr.spec.size",
		`7 components."db-x".outputs.host`,
		"8 live.web.d",
		"9 cr.spec.any.x",
		"12 cr.spec.name",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
