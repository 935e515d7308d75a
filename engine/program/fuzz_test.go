package program_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// fed reads everything that comes from outside.
const fed = `
config: {image: string | *"a", limits: {cpu: int | *1, [string]: int}, tags: [...string]}
inputs: {
	settings: {apiVersion: "v1", kind: "ConfigMap", name: "settings"}
	others: {apiVersion: "v1", kind: "Secret", selector: a: "b"}
}
components: {
	web: {
		when: cr.spec.size > 1
		objects: map: {
			apiVersion: "v1"
			kind:       "ConfigMap"
			metadata: {name: cr.metadata.name, labels: cr.metadata.labels}
			data: {
				image: config.image
				for k, v in cr.spec.any {"any-\(k)": "\(v)"}
				for i, o in inputs.others.objects {"o\(i)": o.metadata.name}
				if inputs.settings.object.data.x != _|_ {x: inputs.settings.object.data.x}
			}
		}
		verify: there: live.web.map.data.image == config.image
		failed: lost: live.web.map.status.conditions[0].status == "False"
		outputs: cpu: config.limits.cpu + 1
	}
	after: objects: map: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "after-\(cr.metadata.name)"
		data: cpu: "\(components.web.outputs.cpu)"
	}
}
status: {image: live.web.map.data.image, n: len(live.web.map.metadata.annotations)}
`

// FuzzSession feeds whatever an API server, a ConfigMap or an annotation may hold.
func FuzzSession(f *testing.F) {
	p := compile(f, fed)
	f.Add(`{"size":2,"any":{"a":1}}`, `{"labels":{"a":"b"}}`, `{"data":{"image":"a"},"status":{"conditions":[{"status":"False"}]}}`, `{"data":{"x":"y"}}`, `{"image":"b"}`)
	f.Add(`{"size":1e308,"any":{"a\"\n":-0.0,"":[null,{}]}}`, `{"labels":null,"annotations":[],"name":5}`, `{"data":5,"status":{"conditions":[]}}`, `{"data":[],"metadata":{"name":null}}`, `{"limits":{"cpu":"1","x":9223372036854775807},"tags":[1]}`)
	f.Add(`[]`, `{"name":"\u0000\u202e"}`, `{"metadata":{"annotations":{"a":{"b":{}}}}}`, `null`, `{"limits":null,"no":1}`)
	f.Fuzz(func(t *testing.T, spec, metadata, live, input, config string) {
		const enough = 4 << 10 // how long an evaluation of much takes is not what is asked here
		if len(spec)+len(metadata)+len(live)+len(input)+len(config) > enough {
			t.Skip("it is longer than what is asked here")
		}
		meta, object := fedObject(metadata), fedObject(live)
		s := program.Session{
			CR:     map[string]any{"apiVersion": "shop.example/v1", "kind": "Shop", "metadata": meta, "spec": fedValue(spec)},
			Live:   map[string]map[string]map[string]any{"web": {"map": object}, "none": {"x": object}},
			Inputs: map[string]program.FoundInput{"settings": {Objects: []map[string]any{fedObject(input)}}, "others": {Several: true, Objects: []map[string]any{fedObject(input), object}}},
			Config: []program.Layer{{Origin: "annotation", Values: fedObject(config)}},
		}
		got, again := outcomeOf(t, p, s), outcomeOf(t, p, s)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("the same says two things (-first +second):\n%s", diff)
		}
		viewTells(t, p, s)
	})
}

// viewTells evaluates a session that differs from another one in one part: if the package says something
// else of it, it has another view.
func viewTells(t *testing.T, p *program.Program, s program.Session) {
	t.Helper()
	want := outcomeOf(t, p, s)
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"x": "eA=="}, "metadata": map[string]any{"resourceVersion": "2"}}
	others := []func(*program.Session){
		func(o *program.Session) { o.Live = map[string]map[string]map[string]any{"web": {"map": secret}} },
		func(o *program.Session) { o.Live = nil },
		func(o *program.Session) {
			o.Inputs = map[string]program.FoundInput{"settings": {Objects: []map[string]any{secret}}}
		},
		func(o *program.Session) { o.Config = nil },
	}
	which := len(want) % len(others) // one each time: evaluations are most of the cost
	other := s
	others[which](&other)
	if view := p.Views().Of(s); view.Whole() != template.Shape(view.Seen(), template.Everything) {
		t.Errorf("the view %v has another shape in its place", view.Seen())
	}
	if got := outcomeOf(t, p, other); got != want && p.Views().Of(s).Whole() == p.Views().Of(other).Whole() {
		t.Errorf("session %d has the same view, and another outcome (-first +second):\n%s", which, cmp.Diff(want, got))
	}
}

// outcomeOf returns what an evaluation comes to, as text.
func outcomeOf(t *testing.T, p *program.Program, s program.Session) string {
	t.Helper()
	r, err := p.Evaluate(s)
	if problem, ok := errors.AsType[*program.PanicError](err); ok {
		t.Fatalf("it panics: %v\n%s", problem, problem.Stack)
	}
	text, failed := json.Marshal(r)
	if failed != nil {
		t.Fatal(failed)
	}
	if err != nil {
		return string(text) + err.Error()
	}
	return string(text)
}

// fedValue reads JSON as an API server's objects are read, or returns the text.
func fedValue(text string) any {
	var out any
	if utiljson.Unmarshal([]byte(text), &out) != nil {
		return text
	}
	return out
}

// fedObject is fedValue of an object.
func fedObject(text string) map[string]any {
	if m, ok := fedValue(text).(map[string]any); ok {
		return m
	}
	return map[string]any{"name": text}
}
