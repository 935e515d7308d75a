package program_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// many returns a map of n fields.
func many(n int) map[string]any {
	out := make(map[string]any, n)
	for i := range n {
		out[fmt.Sprintf("k%05d", i)] = "v"
	}
	return out
}

// ones returns a list of n elements.
func ones(n int) []any { return slices.Repeat([]any{1}, n) }

// deep returns data that is nested n deep.
func deep(n int) any {
	var out any = "x"
	for range n {
		out = []any{out}
	}
	return out
}

// reader renders nothing from the resource's map and list but how long they are.
const reader = `
inputs: it: {apiVersion: "v1", kind: "ConfigMap", name: "it"}
components: web: {
	objects: {for i, _ in *cr.spec.any.list | [] {"c\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c\(i)", data: text: *cr.spec.any.text | ""}}}
	verify: it: len(*inputs.it.object.data | {}) >= 0 && len(*live.web | {}) >= 0
}
config: {...}
status: {for k in *cr.spec.any.report | [] {(k): *cr.spec.any.text | ""}}
`

// An honest resource is far below each limit; an attacker is refused before CUE sees it,
// or before what was rendered is taken out of CUE.
func TestResourceBeyondALimitIsRefused(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	cases := map[string]struct {
		pkg       string
		spec      map[string]any
		session   func(*program.Session)
		says      string // "" is no refusal
		evaluated bool
	}{
		"9,000 keys": {spec: map[string]any{"any": many(9_000)}},
		"60,000 keys": {
			spec: map[string]any{"any": map[string]any{"env": many(60_000)}},
			says: "cr has 60008 fields and list elements, most of them in cr.spec.any.env, and may have 10000",
		},
		"60,000 keys with leave": {
			pkg: "limits: fields: 12_000\n", spec: map[string]any{"any": many(11_000)},
		},
		"60,000 labels that nobody reads": {
			session: func(s *program.Session) { s.CR["metadata"].(map[string]any)["labels"] = many(60_000) },
		},
		"60,000 labels that somebody reads": {
			pkg:     "_labels: cr.metadata.labels\n",
			session: func(s *program.Session) { s.CR["metadata"].(map[string]any)["labels"] = many(60_000) },
			says:    "cr has 60007 fields and list elements, most of them in cr.metadata.labels, and may have 10000",
		},
		"200 KiB of text": {spec: map[string]any{"name": strings.Repeat("x", 200<<10)}},
		"a megabyte of text": {
			spec: map[string]any{"name": strings.Repeat("x", 1<<20)},
			says: "the names and texts in cr have 1048648 bytes, most of them in cr.spec.name, and may have 262144",
		},
		"nested 50 deep": {spec: map[string]any{"any": map[string]any{"a": deep(50)}}},
		"nested 5000 deep": {
			spec: map[string]any{"any": map[string]any{"a": deep(5000)}},
			says: "cr is nested more than 64 deep",
		},
		"a large ConfigMap as input": {
			session: func(s *program.Session) {
				s.Inputs = map[string]program.FoundInput{"it": {Objects: []map[string]any{{"data": map[string]any{"a": strings.Repeat("x", 1<<20)}}}}}
			},
		},
		"60,000 keys in an input": {
			session: func(s *program.Session) {
				s.Inputs = map[string]program.FoundInput{"it": {Objects: []map[string]any{{"data": many(60_000)}}}}
			},
			says: "a struct in inputs has 60000 fields, most of them in inputs.it.object.data, and may have 10000",
		},
		"60,000 keys in configuration": {
			session: func(s *program.Session) { s.Config = []program.Layer{{Origin: "here", Values: many(60_000)}} },
			says:    "config has 60000 fields and list elements, and may have 10000",
		},
		"five megabytes of live objects that are only counted": {
			session: func(s *program.Session) {
				s.Live = map[string]map[string]map[string]any{"web": {"a": {"b": strings.Repeat("x", 5<<20)}}}
			},
		},
		"five megabytes of live objects": {
			pkg: "_live: live.web\n",
			session: func(s *program.Session) {
				s.Live = map[string]map[string]map[string]any{"web": {"a": {"b": strings.Repeat("x", 5<<20)}}}
			},
			says: "the names and texts in live have 5242885 bytes, most of them in live.web.a.b, and may have 4194304",
		},
		"500 objects": {spec: map[string]any{"any": map[string]any{"list": ones(500)}}},
		"501 objects": {
			spec:      map[string]any{"any": map[string]any{"list": ones(501)}},
			says:      "the package renders at least 501 objects for it, most of them in component web, and 500 are the limit",
			evaluated: true,
		},
		"501 objects with leave": {pkg: "limits: objects: 600\n", spec: map[string]any{"any": map[string]any{"list": ones(501)}}},
		"501 objects that should not exist": {
			pkg: "components: web: when: false\n", spec: map[string]any{"any": map[string]any{"list": ones(501)}},
		},
		"objects by the number of a Secret's keys": {
			pkg: "inputs: it: kind: \"Secret\"\n", spec: map[string]any{"any": map[string]any{"list": ones(501)}},
			session: func(s *program.Session) {
				s.Inputs = map[string]program.FoundInput{"it": {Objects: []map[string]any{{"kind": "Secret", "data": map[string]any{"a": "czNjcjN0"}}}}}
			},
			says:      "the package renders more objects for it than the limit, which is 500",
			evaluated: true,
		},
		"ten megabytes of objects": {
			spec:      map[string]any{"any": map[string]any{"list": ones(100), "text": strings.Repeat("x", 100<<10)}},
			says:      "the objects that the package renders for it take more than the limit of 8388608 bytes, most of them in component web",
			evaluated: true,
		},
		"501 hooks": {
			pkg:       "hooks: afterDeploy: {for i, _ in cr.spec.any.hooks {\"h\\(i)\": objects: c: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"h\\(i)\"}}}\n",
			spec:      map[string]any{"any": map[string]any{"hooks": ones(501)}},
			says:      "the package has more components for it than the limit, which is 500",
			evaluated: true,
		},
		"501 components": {
			pkg:       "components: {for i, _ in cr.spec.any.parts {\"p\\(i)\": verify: it: true}}\n",
			spec:      map[string]any{"any": map[string]any{"parts": ones(501)}},
			says:      "the package has more components for it than the limit, which is 500",
			evaluated: true,
		},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(row.pkg, "inputs") {
				row.pkg = strings.Replace(reader, "ConfigMap\", name: \"it", "Secret\", name: \"it", 1)
			} else {
				row.pkg += reader
			}
			s := session(t, `{}`, `{}`)
			if row.spec != nil {
				s.CR["spec"] = row.spec
			}
			if row.session != nil {
				row.session(&s)
			}
			p := compile(t, row.pkg)
			_, err := p.Evaluate(s)
			limit, refused := errors.AsType[*program.LimitError](err)
			if bounded := p.Views().WithinLimits(p.Views().Of(s), program.Rollout{}); bounded != (!refused || limit.Evaluated) {
				t.Errorf("its view is bounded: %v, and it is refused: %v", bounded, err)
			}
			switch {
			case row.says == "":
				if err != nil {
					t.Errorf("it is refused: %v", err)
				}
			case !refused:
				t.Errorf("it is not refused: %v", err)
			case limit.Text != row.says || limit.Evaluated != row.evaluated:
				t.Errorf("got evaluated=%v %q\nwant evaluated=%v %q", limit.Evaluated, limit.Text, row.evaluated, row.says)
			}
		})
	}
}

func TestLimitThatRestsOnTheResourceIsAFault(t *testing.T) {
	t.Parallel()
	_, err := program.Load(inline.Snapshot(t, head+"limits: objects: len(cr.metadata.name)\n"))
	if faults, ok := errors.AsType[fault.Faults](err); !ok || !strings.Contains(faults.Error(), "limits.objects: a limit is a number that is written out") {
		t.Errorf("got %v", err)
	}
}

func TestStatusFieldsThatAreTooLargeAreLeftOut(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	p := compile(t, `
status: {small: "s", large: *cr.spec.any.text | "", list: [for x in *cr.spec.any.list | [] {x}]}
`)
	s := session(t, `{}`, `{}`)
	list := make([]any, 9_000)
	for i := range list {
		list[i] = strings.Repeat("y", 20)
	}
	s.CR["spec"] = map[string]any{"any": map[string]any{"list": list[:2000], "text": strings.Repeat("x", 130<<10)}}
	r := evaluate(t, p, s)
	if _, large := r.Status["large"]; large || r.Status["small"] != "s" || r.Status["list"] == nil || !strings.Contains(r.Unstored, "these are left out: large") {
		t.Errorf("got %d fields, unstored %q", len(r.Status), r.Unstored)
	}
	s.CR["spec"] = map[string]any{"any": map[string]any{"list": list}}
	if r := evaluate(t, p, s); r.Status["list"] != nil || !strings.Contains(r.Unstored, "these are left out: list") {
		t.Errorf("got %d fields, unstored %q", len(r.Status), r.Unstored)
	}
	s.CR["spec"] = map[string]any{}
	if r := evaluate(t, p, s); r.Unstored != "" {
		t.Errorf("an empty one is left out: %q", r.Unstored)
	}
}
