package program_test

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"operetta.dev/engine/program"
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
			Inputs: map[string]program.Found{"settings": {Objects: []map[string]any{fedObject(input)}}, "others": {Several: true, Objects: []map[string]any{fedObject(input), object}}},
			Config: []program.Layer{{Origin: "annotation", Values: fedObject(config)}},
		}
		got, again := outcomeOf(t, p, s), outcomeOf(t, p, s)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("the same says two things (-first +second):\n%s", diff)
		}
		remembersNothingElse(t, p, s)
	})
}

// remembersNothingElse evaluates a session after one that differs from it in one part, with a memo
// and without: what is remembered of the other must not be said of this one.
func remembersNothingElse(t *testing.T, p *program.Program, s program.Session) {
	t.Helper()
	s.CR = maps.Clone(s.CR)
	meta, _ := s.CR["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	meta["uid"] = "1"
	s.CR["metadata"] = meta
	want := outcomeOf(t, p, s)
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"x": "eA=="}, "metadata": map[string]any{"resourceVersion": "2"}}
	others := []func(*program.Session){
		func(o *program.Session) { o.Live = map[string]map[string]map[string]any{"web": {"map": secret}} },
		func(o *program.Session) { o.Live = nil },
		func(o *program.Session) {
			o.Inputs = map[string]program.Found{"settings": {Objects: []map[string]any{secret}}}
		},
		func(o *program.Session) { o.Config = nil },
	}
	which := len(want) % len(others) // one each time: evaluations are most of the cost
	memo, other := program.NewMemo(p, 1), s
	others[which](&other)
	outcomeOf(t, memo, other)
	if diff := cmp.Diff(want, outcomeOf(t, memo, s)); diff != "" {
		t.Errorf("after session %d, which differs (-want +got):\n%s", which, diff)
	}
}

// An evaluator is a program, or one that remembers.
type evaluator interface {
	Evaluate(s program.Session) (program.Rollout, error)
}

// outcomeOf returns what an evaluation comes to, as text.
func outcomeOf(t *testing.T, p evaluator, s program.Session) string {
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
