package program_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// shops are objects of web.d with fields that nothing but a type refers to, as JSON.
var shops = []string{
	``,
	`{"kind": "Shop"}`,
	`{"kind": "Shop", "spec": {"n": 2, "mode": "fast", "max": 9, "list": [{"a": 1, "b": 2}, {"a": 3}], "map": {"x": 1, "y": 2}, "deep": {"k": "v", "l": "w"}}}`,
	`{"kind": "Shop", "spec": {"n": 2, "mode": "slow", "min": 4, "list": [{"a": 1, "b": "x"}], "map": {"x": 1, "y": "z"}, "deep": {"k": "v"}}}`,
	`{"kind": "Shop", "spec": {"n": "x", "mode": "other", "list": {"a": 1}, "map": [1], "deep": "v"}}`,
	`{"kind": "Shop", "spec": {"n": 7, "mode": "fast", "list": [], "map": {}, "deep": {}}}`,
	`{"kind": "Shop", "spec": "v"}`,
}

// typed are declarations of live.web.d, and expressions over it.
var typed = map[string][2]string{
	"a default that the object overrides": {
		"live: web: d: #D\n#D: {kind: string, spec: {n: *1 | int, double: n * 2, ...}}", `live.web.d.spec.double`,
	},
	"a computed field of an open type": {
		"live: web: d: #D\n#D: {spec: {...}, sum: spec.n + spec.max, ...}", `live.web.d.sum`,
	},
	"a disjunction that a field decides": {
		"live: web: d: spec: #S\n#S: {mode: \"fast\", of: 1, ...} | {mode: \"slow\", of: 2, ...} | *{of: 3, ...}", `live.web.d.spec.of`,
	},
	"a choice of a closed type and an open one": {
		"live: web: d: spec: #S\n#S: *{mode: string, of: 1} | {mode: string, of: 2, ...}", `live.web.d.spec.of`,
	},
	"a closed type below a choice": {
		"live: web: d: #D\n#D: *{spec?: #S, of: 1, ...} | {of: 2, ...}\n#S: mode?: string", `live.web.d.of`,
	},
	"a closed type beside one that nobody can read": {
		"live: web: d: #D & and([{spec: {mode: \"fast\", ...}, ...}])\n#D: {kind?: string, spec?: _}", `live.web.d.spec.mode`,
	},
	"a disjunction of closed types": {
		"live: web: d: spec: #F | #S\n#T: {n: _, mode: string, list?: _, map?: _, deep?: _}\n#F: {#T, max?: int, of: 1}\n#S: {#T, min!: int, of: 2}", `live.web.d.spec.of`,
	},
	"below another type": {
		"live: web: d: #D\n#D: {spec: #S, ...}\n#S: {deep: #E, ...}\n#E: {k?: string, l?: string, has: len([if k != _|_ {1}, if l != _|_ {1}]), ...}", `live.web.d.spec.deep.has`,
	},
	"a pattern": {
		"live: web: d: spec: map: [string]: int", `live.web.d.spec.n`,
	},
	"a pattern of all objects": {
		"live: [string]: [string]: #D\n#D: {spec: {n: int, ...}, more: spec.n + 1, ...}", `live.web.d.more`,
	},
	"a pattern in a type": {
		"live: web: d: #D\n#D: {spec: {map: [string]: int, ...}, sum: len(spec.map), ...}", `live.web.d.sum`,
	},
	"elements of a list": {
		"live: web: d: spec: list: [...{a: int, b?: int}]", `live.web.d.spec.n`,
	},
	"computed fields of elements": {
		"live: web: d: spec: list: [...#E]\n#E: {a: int, b: int | *5, sum: a + b}", `[for e in live.web.d.spec.list {e.sum}]`,
	},
	"a comprehension in the type": {
		"live: web: d: #D\n#D: {spec: {mode: string, ...}, if spec.mode == \"fast\" {of: \"it\"}, ...}", `live.web.d.of`,
	},
	"a comprehension over all fields": {
		"live: web: d: #D\n#D: {spec: {...}, keys: [for k, _ in spec {k}], ...}", `live.web.d.keys`,
	},
	"a comprehension beside three dots": {
		"live: web: d: {spec: {...}, if spec.mode == \"fast\" {of: \"it\"}, ...}", `live.web.d.of`,
	},
	"a let": {
		"live: web: d: #D\n#D: {let s = spec, spec: {...}, twice: s.n * 2, ...}", `live.web.d.twice`,
	},
	"a let for the type": {
		"let D = {spec: {...}, twice: spec.n * 2, ...}\nlive: web: d: D", `live.web.d.twice`,
	},
	"an alias of the type": {
		"live: web: d: #D\n#D: D={spec: {...}, twice: D.spec.n * 2, ...}", `live.web.d.twice`,
	},
	"an alias of a field of the type": {
		"live: web: d: #D\n#D: {S=spec: {...}, twice: S.n * 2, ...}", `live.web.d.twice`,
	},
	"an alias of the live objects": {
		"L=live: {web: d: {spec: {...}, twice: L.web.d.spec.n * 2, ...}}", `live.web.d.twice`,
	},
	"a type that is embedded": {
		"live: web: d: {#D, more: int}\n#D: {spec: {...}, more: spec.n, ...}", `live.web.d.more`,
	},
	"a hidden type": {
		"live: web: d: _D\n_D: {spec: {...}, more: spec.n, ...}", `live.web.d.more`,
	},
	"a type in a type": {
		"live: web: d: #T.#D\n#T: #D: {spec: {...}, more: spec.n, ...}", `live.web.d.more`,
	},
	"a type that is written twice": {
		"live: web: d: #D\n#D: {spec: {...}, ...}\n#D: {spec: _, more: spec.n, ...}", `live.web.d.more`,
	},
	"a type under a condition": {
		"live: web: d: #D\nif cr.spec.size == 2 {#D: {spec: {...}, more: spec.n, ...}}\n#D: {...}", `live.web.d.more`,
	},
	"a computed name": {
		"live: web: (_name): {spec: {...}, more: spec.n, ...}\n_name: \"d\"", `live.web.d.more`,
	},
	"a computed name in a type": {
		"live: web: d: #D\n#D: {spec: {...}, (\"mo\" + \"re\"): spec.n, ...}", `live.web.d.more`,
	},
	"a closed struct": {
		"live: web: d: close({kind: string, spec?: {...}, more: spec.n})", `live.web.d.more`,
	},
	"a type that refers to itself": {
		"live: web: d: #D\n#D: {kind?: string, spec?: #D, n?: int, k: *\"\\(n)\" | \"none\", ...}", `live.web.d.spec.k`,
	},
	"a type that fields have to fit": {
		"live: web: d: spec: {n: int, ...}", `live.web.d.spec.mode`,
	},
	"a validator": {
		"live: web: d: spec: #S\n#S: {struct.MaxFields(2), ...}", `live.web.d.spec.mode`,
	},
	"a list that has to have elements": {
		"live: web: d: spec: list: [_, ...]", `live.web.d.spec.mode`,
	},
	"several types of which one has to fit": {
		"live: web: d: spec: matchN(1, [{n: int, ...}, {mode: \"slow\", ...}])", `live.web.d.spec.mode`,
	},
	"another object": {
		"live: web: d: #D\n#D: {spec: {...}, more: live.web.d.spec.n, ...}", `live.web.d.more`,
	},
	"an embedded type whose field is opened": {
		"live: web: d: {#D, spec: {...}, ...}\n#D: {kind?: string, S=spec: {n: _, twice: *(S.max * 2) | 0}}", `live.web.d.spec.twice`,
	},
	"an embedded type that is opened": {
		"live: web: d: {#D, ...}\n#D: D={kind?: string, twice: *D.spec.n | 0}", `live.web.d.twice`,
	},
	"a type that is opened by another": {
		"live: web: d: #E\n#E: {#D, ...}\n#D: D={kind?: string, twice: *D.spec.n | 0}", `live.web.d.twice`,
	},
	"a type that a comprehension opens": {
		"live: web: d: #D\n#D: {kind?: string, twice: int | *D.spec.n | 0, let D = _self, _self: {spec?: _, ...}, if cr.spec.size == 2 {...}}", `live.web.d.kind`,
	},
	"a fallback of a comprehension": {
		"live: web: d: #D\n#D: {spec?: {...}, kind?: string, for x in [if spec.mode != _|_ {spec.mode}] {of: x}, ...}", `live.web.d.of`,
	},
	"an alias after the label": {
		"live: web: d~D: {spec: {...}, twice: D.spec.n * 2, ...}", `live.web.d.twice`,
	},
	"an alias after the label of a field in a type": {
		"live: web: d: #D\n#D: {spec~S: {...}, twice: S.n * 2, ...}", `live.web.d.twice`,
	},
	"a root that is embedded": {
		"{live: web: d: #D}\n#D: {spec: {...}, twice: spec.n * 2, ...}", `live.web.d.twice`,
	},
	"a root of a definition": {
		"#Root\n#Root: {live: web: d: #D, ...}\n#D: {spec: {...}, twice: spec.n * 2, ...}", `live.web.d.twice`,
	},
	"a hidden field of the type that compares": {
		"live: web: d: #D\n#D: {spec: {...}, _same: spec == {n: 2}, same: _same, ...}", `live.web.d.same`,
	},
	"a definition that a package adds to": {
		"live: web: d: #D & {more: 5, ...}\n#D: {spec: {...}, more: int & >=spec.n, ...}", `live.web.d.more`,
	},
	"a conjunction of all parts": {
		"live: web: d: and([#D, {...}])\n#D: {spec: {...}, more: spec.n, ...}", `live.web.d.more`,
	},
	"a type that is chosen": {
		"live: web: d: [#D, {...}][0]\n#D: {spec: {...}, more: spec.n, ...}", `live.web.d.more`,
	},
	"a type of all of them by a let": {
		"let T = #D\nlive: web: d: T\n#D: {spec: {...}, more: spec.n, ...}", `live.web.d.more`,
	},
	"not of a kind": {
		"live: web: d: spec: !=null & {...}", `live.web.d.spec.mode`,
	},
	"as many as there are": {
		"live: web: d: spec: list: [_, _]", `live.web.d.spec.mode`,
	},
	"none at all": {
		"live: web: d: spec: list: []", `live.web.d.spec.mode`,
	},
	"nothing but null": {
		"live: web: d: spec: null | #S\n#S: {n: int, ...}", `live.web.d.spec.mode`,
	},
	"an argument of a type of its own": {
		"#R: {object: _, let o = object, twice: o.spec.n * 2}", `(#R & {object: live.web.d}).twice`,
	},
	"an argument that comes back": {
		"#R: {object: _, again: object}", `(#R & {object: live.web.d}).again.spec.n`,
	},
	"an argument whose type looks at it": {
		"#R: {object: {spec: {n: int, ...}, m: spec.n, ...}, out: object.m}", `(#R & {object: live.web.d}).out`,
	},
	"an argument that a type of its own closes": {
		"#R: {object: {kind: string, spec?: {n?: int}}, out: object.kind}", `(#R & {object: live.web.d}).out`,
	},
	"an argument that has an alias": {
		"#R: {O=object: _, out: O.spec.n}", `(#R & {object: live.web.d}).out`,
	},
	"an argument of a definition that has an alias": {
		"#R: R={object: _, out: R.object.spec.n}", `(#R & {object: live.web.d}).out`,
	},
	"an argument among several": {
		"#R: {object: _, other: {...}, out: other.spec.n}", `(#R & {object: live.web.d, other: object}).out`,
	},
	"an argument with a pattern beside": {
		"#R: {object: _, [string]: {spec?: n?: int, ...}, ...}", `(#R & {object: live.web.d}).object.spec.mode`,
	},
	"an argument with a pattern beside, and a result": {
		"#R: {[string]: {spec?: n?: int, ...}, object: _, out: {m: *object.kind | \"\"}}", `(#R & {object: live.web.d}).out.m`,
	},
	"an argument of which elements are counted": {
		"#R: {object: _, _l: *object.spec.list | [], out: len([for e in _l if (*e.a | 0) > 0 {e}])}", `(#R & {object: live.web.d}).out`,
	},
	"an argument that is handed on": {
		"#R: {object: _, out: (#I & {of: object}).out}\n#I: {of: _, out: of.spec.n}", `(#R & {object: live.web.d}).out`,
	},
	"an argument for a conjunction of definitions": {
		"#R: {object: {spec: n: _, ...}, out: object.spec.n, ...}\n#I: {object: spec: {max?: int, ...}, ...}", `(#R & #I & {object: live.web.d}).out`,
	},
	"an argument that has a default": {
		"#R: {object: {spec: n: *1 | int, ...}, out: object.spec.n}", `(#R & {object: live.web.d}).out`,
	},
	"an argument with a name for a part": {
		"#R: {object: _, _s: *object.spec | {}, out: len(_s), also: *_s.mode | \"\"}", `(#R & {object: live.web.d}).out`,
	},
	"an argument with a name for a part that somebody adds to": {
		"#R: {object: _, _s: object.spec, out: _s}", `(#R & {object: live.web.d, _s: {more: 1, ...}}).out.n`,
	},
	"an argument that a conjunct refers to": {
		"#R: {object: _, out: int}", `(#R & {object: live.web.d, out: object.spec.n}).out`,
	},
	"an argument of a computed name": {
		"#R: {object: _, out: _}", `(#R & {object: live.web.d, ("ou" + "t"): object.spec.n}).out`,
	},
	"an argument that is given twice": {
		"#R: {object: _, out: *object.kind | \"\"}", `(#R & {object: live.web.d} & {object: live.web.e}).out`,
	},
	"an argument that a let has": {
		"#R: {object: _, let o = *object | {}, out: *o.spec.n | 0}", `(#R & {object: live.web.d}).out`,
	},
	"an argument that a comprehension goes over": {
		"#R: {object: _, out: [for k, v in object.spec {k}]}", `(#R & {object: live.web.d}).out`,
	},
	"an argument by a computed index": {
		"#R: {object: _, key: string, out: object.spec[key]}", `(#R & {object: live.web.d, key: "mode"}).out`,
	},
	"an argument as text": {
		"#R: {object: _, out: \"\\(*object.spec.n | 0)\"}", `(#R & {object: live.web.d}).out`,
	},
	"an argument that is asked for": {
		"#R: {object: _, out: object.spec != _|_, other: object == _|_}", `(#R & {object: live.web.d}).out`,
	},
	"a definition in a loop": {
		"#R: {object: _, out: *object.spec.n | 0}", `[for d in live.web {(#R & {object: d}).out}]`,
	},
	"a definition that is written after its use": {
		"#Z: 1\n#R: {object: _, out: [for e in *object.spec.list | [] {*e.a | 0}]}", `(#R & {object: live.web.d}).out`,
	},
	"a result that holds what is around it": {
		"#R: {object: _, out: {of: object.spec, n: *of.n | 0}}", `(#R & {object: live.web.d}).out.n`,
	},
	"an argument for a choice of definitions": {
		"#R: {object: {spec: mode: \"fast\", ...}, out: 1}\n#I: {object: {spec: mode: \"slow\", ...}, out: 2}", `((#R | #I) & {object: live.web.d}).out`,
	},
}

// A type that a package declares for an object may look at fields that nothing else refers to.
func TestWhatATypeOfTheAuthorLooksAtIsPartOfTheView(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for name, row := range typed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "status: n: " + row[1] + "\n" + row[0] + "\ncomponents: web: {objects: d: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"d\"}, verify: it: " + row[1] + " != 100}\n"
			p, err := program.Load(inline.Snapshot(t, headFor(text)))
			if err != nil {
				t.Fatal(err)
			}
			for _, shop := range shops {
				s := session(t, `{}`, `{}`)
				if shop != "" {
					inline.Decode(t, "{web: {d: "+shop+"}}", &s.Live)
				}
				if diff := cmp.Diff(saying(t, p.Unprojected(), s), saying(t, p, s)); diff != "" {
					t.Errorf("%s (-all +view):\n%s", shop, diff)
				}
			}
		})
	}
}

// The same types may be those of inputs.
func TestWhatATypeOfTheAuthorForAnInputLooksAtIsPartOfTheView(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	input := strings.NewReplacer("live: web: d:", "inputs: it: object:", "live.web.d", "inputs.it.object")
	for name, row := range typed {
		if !strings.Contains(row[0], "live: web: d:") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := input.Replace(row[1])
			text := "inputs: it: {apiVersion: \"v1\", kind: \"Shop\", name: \"it\"}\nstatus: n: " + e + "\n" + input.Replace(row[0]) + "\ncomponents: web: verify: it: " + e + " != 100\n"
			p, err := program.Load(inline.Snapshot(t, headFor(text)))
			if err != nil {
				t.Fatal(err)
			}
			for _, shop := range shops {
				s := session(t, `{}`, `{}`)
				if shop != "" {
					inline.Decode(t, `{"it": {"objects": [`+shop+`]}}`, &s.Inputs)
				}
				if diff := cmp.Diff(saying(t, p.Unprojected(), s), saying(t, p, s)); diff != "" {
					t.Errorf("%s (-all +view):\n%s", shop, diff)
				}
			}
		})
	}
}

// headFor returns a text behind head with what types call.
func headFor(text string) string {
	out := "package shop\nimport \"struct\"\n" + head[len("package shop\n"):] + "_uses: struct.MaxFields(1)\n" + text
	if strings.Contains(text, "~") {
		return "@experiment(aliasv2)\n\n" + out
	}
	return out
}
