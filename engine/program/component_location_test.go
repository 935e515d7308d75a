package program_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// elsewhere are packages whose components are written in another place than below
// components. In each, web refers to a live object of db, and has a predicate that is
// false.
var elsewhere = map[string]struct{ reason, text string }{
	"embedded among the components": {
		"what several packages share is embedded",
		"_common: web: _body\ncomponents: {_common, web: objects: _map}",
	},
	"unified with the components": {
		"unification is the other way to write it",
		"_common: web: _body\ncomponents: _common & {web: objects: _map}",
	},
	"chosen by the version": {
		"a package holds the behaviour of several versions",
		"_releases: \"1\": components: web: _body & {objects: _map}\n_releases: \"2\": components: web: objects: _map\ncomponents: _releases[cr.spec.name].components",
	},
	"by a list": {
		"the place in a list is a name as well",
		"_list: [{web: _body & {objects: _map}}]\ncomponents: _list[cr.spec.size-2]",
	},
	"embedded at the root": {
		"a base brings fields of the root with it",
		"#Base: {components: web: _body, ...}\n#Base\ncomponents: web: objects: _map",
	},
	"embedded at the root, from another file of the same package": {
		"a file is no border",
		"#Base: {_below, ...}\n_below: components: web: _body\n#Base\ncomponents: web: objects: _map",
	},
	"embedded at the root, with fields of its own": {
		"live is the same value there, under the same name",
		"#Base: {live: _, components: web: verify: enough: live.db.map.data.count == \"2\", ...}\n#Base\ncomponents: web: objects: _map",
	},
	"guarded at the root, by a name of the guarded part": {
		"components is a field of the guarded struct there",
		"if cr.spec.name == \"1\" {\n\tcomponents: {web: {objects: _map, verify: enough: components.db.outputs.constant && live.db.map.data.count == \"2\"}, db: outputs: constant: true}\n}",
	},
	"guarded at the root": {
		"a file for each version has one guard",
		"if cr.spec.name == \"1\" {\n_releases\n}\n_releases: components: web: _body & {objects: _map}",
	},
}

// body is what elsewhere is about.
const body = `
_body: verify: enough: live.db.map.data.count == "2"
_map: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name}
components: db: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "db"}
`

// TestAComponentIsTheSameWhereverItIsWritten checks that nothing of a component is
// overlooked because the text below components does not show it.
func TestAComponentIsTheSameWhereverItIsWritten(t *testing.T) {
	t.Parallel()
	for name, c := range elsewhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, c.text+body)
			for count, want := range map[string]program.Verdict{"1": program.False, "2": program.True} {
				r := evaluate(t, p, session(t, `name: "1"`, `db: {map: {data: {count: "`+count+`"}}}`))
				expectEnough(t, c.reason, r, want)
				var to []string
				for _, e := range componentOf(t, r, "web").Edges {
					to = append(to, e.To)
				}
				if diff := cmp.Diff([]string{"db"}, to); diff != "" {
					t.Errorf("%s: edges (-want +got):\n%s", c.reason, diff)
				}
			}
		})
	}
}

// TestABaseOfAnotherPackageIsNotOverlooked: its text is not that of the package, so
// that everything has to be taken for possible.
func TestABaseOfAnotherPackageIsNotOverlooked(t *testing.T) {
	t.Parallel()
	s, err := source.Loader{}.Module("shop", "", "shop", fstest.MapFS{
		"cue.mod/module.cue": {Data: []byte("module: \"shop.example@v0\"\nlanguage: version: \"v0.17.0\"\n")},
		"lib/lib.cue": {Data: []byte(`package lib

#Base: {
	live: {...}
	components: web: verify: enough: live.db.map.data.stock == "2"
	...
}
`)},
		"shop/lib.cue":  {Data: []byte("package shop\n\nimport \"shop.example/lib\"\n\nlib.#Base\ncomponents: web: objects: _map\n")},
		"shop/shop.cue": {Data: []byte(head + body)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	for stock, want := range map[string]program.Verdict{"1": program.False, "2": program.True} {
		r := evaluate(t, p, session(t, ``, `db: {map: {data: {stock: "`+stock+`"}}}`))
		expectEnough(t, "a base of another package", r, want)
	}
}

// expectEnough compares the verdicts of web.
func expectEnough(t *testing.T, reason string, r program.Rollout, want program.Verdict) {
	t.Helper()
	got := map[string]program.Verdict{}
	for _, v := range componentOf(t, r, "web").Verify {
		got[v.Name] = v.Verdict
	}
	if diff := cmp.Diff(map[string]program.Verdict{"enough": want}, got); diff != "" {
		t.Errorf("%s: verdicts (-want +got):\n%s", reason, diff)
	}
}
