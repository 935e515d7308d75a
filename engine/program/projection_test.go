package program_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

func TestWhateverThePackageRefersToOfTheResourceIsThere(t *testing.T) {
	t.Parallel()
	// What the component holds, and what stands beside the components.
	cases := map[string][2]string{
		"by its path":                 {`verify: it: cr.metadata.labels.team == "a"`},
		"by index":                    {`verify: it: cr.metadata.labels["team"] == "a"`},
		"of a name with a slash":      {`verify: it: cr.metadata.labels["x.example/team"] == "b"`},
		"of the annotations":          {`verify: it: cr.metadata.annotations.note == "c"`},
		"by a computed index":         {`verify: it: cr.metadata.labels["te\("am")"] == "a"`},
		"by a let of the metadata":    {`let m = cr.metadata, verify: it: m.labels.team == "a"`},
		"by a hidden field":           {`verify: it: _labels.team == "a"`, `_labels: cr.metadata.labels`},
		"by an alias":                 {`verify: it: C.metadata.labels.team == "a"`, "C=cr: _"},
		"in a loop":                   {`verify: it: len([for k, v in cr.metadata.labels {k}]) == 2`},
		"as a count":                  {`verify: it: len(cr.metadata.labels) == 2`},
		"as an argument":              {`verify: it: (#R & {object: cr}).team == "a"`, `#R: {object: _, team: object.metadata.labels.team}`},
		"as the presence of all":      {`verify: it: cr.metadata.labels != _|_`},
		"as the absence of one":       {`verify: it: cr.metadata.labels.nobody == _|_`},
		"in a type of the author":     {`verify: it: true`, `cr: metadata: labels: team!: "a"`},
		"in a pattern of the author":  {`verify: it: true`, `cr: metadata: labels: [=~"team"]: "a" | "b"`},
		"beside it in the resource":   {`verify: it: cr.spec.any.team == "a"`, `cr: {metadata: labels: {team: _, ...}, spec: any: team: metadata.labels.team}`},
		"in a copy of all":            {`verify: it: _copy == {team: "a", "x.example/team": "b"}`, `_copy: {for k, v in cr.metadata.labels {(k): v}}`},
		"what it does not refer to":   {`verify: it: cr.metadata.name == "corner"`},
		"in a definition of the root": {`verify: it: #Mine.of == "a"`, `#Mine: of: cr.metadata.labels.team`},
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, text[1]+"\ncomponents: web: {"+text[0]+"}\n")
			s := session(t, `{}`, `{}`)
			meta, _ := s.CR["metadata"].(map[string]any)
			meta["labels"] = map[string]any{"team": "a", "x.example/team": "b"}
			meta["annotations"] = map[string]any{"note": "c"}
			if v := evaluate(t, p, s).Components[0].Verify; len(v) != 1 || v[0].Verdict != program.True {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// What the author asks of a label must not go unseen because the label does not enter.
func TestLabelThatTheAuthorForbidsIsFound(t *testing.T) {
	t.Parallel()
	p := compile(t, "cr: metadata: labels: [=~\"^team$\"]: \"a\" | \"b\"\ncomponents: web: verify: it: true\n")
	s := session(t, `{}`, `{}`)
	meta, _ := s.CR["metadata"].(map[string]any)
	meta["labels"] = map[string]any{"team": "c"}
	if r, err := p.Evaluate(s); err != nil || len(r.Invalid) == 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestWhateverThePackageRefersToOfAnInputIsThere(t *testing.T) {
	t.Parallel()
	const one = "inputs: it: {apiVersion: \"v1\", kind: \"ConfigMap\", name: \"it\"}\n"
	const several = "inputs: it: {apiVersion: \"v1\", kind: \"ConfigMap\", selector: a: \"b\"}\n"
	cases := map[string]struct {
		inputs, verify, beside string
	}{
		"by its path":             {one, `inputs.it.object.data.key == "v"`, ``},
		"by a computed index":     {one, `inputs.it.object.data["k\("ey")"] == "v"`, ``},
		"by a let":                {one, `_o.data.key == "v"`, `_o: inputs.it.object`},
		"in a loop over all":      {one, `len([for _, i in inputs {i.object.data.key}]) == 1`, ``},
		"as the presence of one":  {one, `inputs.it.object != _|_`, ``},
		"as the absence of a key": {one, `inputs.it.object.data.nobody == _|_`, ``},
		"in a type of the author": {one, `inputs.it.object.data.key == "v"`, `inputs: it: object: data: key: string`},
		"one of several":          {several, `inputs.it.objects.it.data.key == "v"`, ``},
		"a loop over several":     {several, `[for _, o in inputs.it.objects {o.data.key}] == ["v"]`, ``},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, row.inputs+row.beside+"\ncomponents: web: verify: it: "+row.verify+"\n")
			s := session(t, `{}`, `{}`)
			object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "it"}, "data": map[string]any{"key": "v", "other": "w"}}
			s.Inputs = map[string]program.FoundInput{"it": {Several: row.inputs == several, Objects: []map[string]any{object}}}
			if v := evaluate(t, p, s).Components[0].Verify; len(v) != 1 || v[0].Verdict != program.True {
				t.Errorf("got %+v", v)
			}
		})
	}
}

func TestWhatThePackageDoesNotReferToChangesNothing(t *testing.T) {
	t.Parallel()
	p := compile(t, `
inputs: it: {apiVersion: "v1", kind: "ConfigMap", name: "it"}
components: web: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: {
	team: cr.metadata.labels.team
	key:  inputs.it.object.data.key
}}
`)
	with := func(labels, data map[string]any) template.Key {
		s := session(t, `{}`, `{}`)
		meta, _ := s.CR["metadata"].(map[string]any)
		meta["uid"], meta["labels"] = "1", labels
		s.Inputs = map[string]program.FoundInput{"it": {Objects: []map[string]any{{"kind": "ConfigMap", "metadata": map[string]any{"name": "it"}, "data": data}}}}
		return p.Views().Of(s).Whole()
	}
	first := with(map[string]any{"team": "a"}, map[string]any{"key": "v"})
	many := map[string]any{"team": "a"}
	for i := range 60_000 {
		many[fmt.Sprint("l", i)] = "x"
	}
	if other := with(many, map[string]any{"key": "v", "other": "w"}); other != first {
		t.Error("labels and keys that nobody reads are part of the view")
	}
	if other := with(map[string]any{"team": "b"}, map[string]any{"key": "v"}); other == first {
		t.Error("a label that it reads is no part of the view")
	}
}

// conditioned returns an object with conditions, the first one with the time when it changed.
func conditioned(when string, more ...any) map[string]any {
	return map[string]any{"status": map[string]any{"conditions": append([]any{
		map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": when},
	}, more...)}}
}

func TestOnlyWhatIsReadOfElementsIsPartOfTheView(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		// text is the package; it may have several declarations.
		text string
		same bool
		// uncounted is true if it is not read how many elements there are.
		uncounted bool
	}{
		"fields of elements":                      {text: `components: web: verify: it: len([for c in live.web.d.status.conditions if c.type == "Ready" && c.status == "True" {1}]) > 0`, same: true},
		"fields of elements, which may be absent": {text: `components: web: verify: it: len([for c in *live.web.d.status.conditions | [] if (*c.type | "") == "Ready" {c}]) > 0`, same: true},
		"how many there are":                      {text: `status: n: len(live.web.d.status.conditions)`, same: true},
		"whether there are any":                   {text: `status: n: [if live.web.d.status.conditions != _|_ {1}, 0][0]`, same: true, uncounted: true},
		"a field of one":                          {text: `status: n: live.web.d.status.conditions[0].type`, same: true},
		"keys":                                    {text: `status: n: [for k, _ in live.web.d.status.conditions[0] {k}]`, same: false},
		"whole elements":                          {text: `status: n: [for c in live.web.d.status.conditions if c.type == "Ready" {c}]`, same: false},
		"the list":                                {text: `status: n: live.web.d.status.conditions`, same: false},
		"a loop and the list":                     {text: "status: n: [for c in live.web.d.status.conditions {c.type}]\nstatus: all: live.web.d.status.conditions", same: false},
		"a loop and the object":                   {text: "status: n: [for c in live.web.d.status.conditions {c.type}]\n_o: live.web.d", same: false},
		"another component in a loop":             {text: `status: n: [for d in live.web for c in d.status.conditions {c.type}]`, same: true},
		"a type of the author for elements":       {text: "live: web: d: status: conditions: [...{type!: string, status!: string, lastTransitionTime!: =~\"^1\"}]\nstatus: n: [for c in live.web.d.status.conditions {c.type}]", same: false},
		"a type of the author for an object":      {text: "#D: {status?: {...}, ...}\nlive: web: d: #D\nstatus: n: [for c in live.web.d.status.conditions {c.type}]", same: true},
		"such a type that reads the object":       {text: "#D: {status?: {...}, first: *status.conditions[0] | null, ...}\nlive: web: d: #D\nstatus: n: [for c in live.web.d.status.conditions {c.type}]", same: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, row.text+"\ncomponents: web: objects: d: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"d\"}")
			seen := func(object map[string]any) (program.Rollout, template.Key) {
				s := session(t, `{}`, `{}`)
				s.Live = map[string]map[string]map[string]any{"web": {"d": object}}
				view := p.Views().Of(s)
				if view.Whole() != template.Shape(view.Seen(), template.Everything) {
					t.Errorf("the view %v has another shape in its place", view.Seen())
				}
				return evaluate(t, p, s), view.Whole()
			}
			first, firstView := seen(conditioned("1"))
			second, secondView := seen(conditioned("2"))
			if (firstView == secondView) != row.same {
				t.Errorf("another time makes the same view: %v, want %v", firstView == secondView, row.same)
			}
			if diff := cmp.Diff(first, second); diff != "" && row.same {
				t.Errorf("the package says something else (-first +second):\n%s", diff)
			}
			if _, view := seen(conditioned("1", map[string]any{"type": "B"})); (view == firstView) != row.uncounted {
				t.Errorf("one more element makes the same view: %v, want %v", view == firstView, row.uncounted)
			}
		})
	}
}
