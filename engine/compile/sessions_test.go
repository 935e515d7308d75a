package compile_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// A tested is a package whose sessions are evaluated by CUE and by templates.
type tested struct {
	program   *program.Program
	compiler  *compile.Compiler
	pins      template.Pins
	templates map[template.Key]*compile.Template

	hits, reused, fallbacks, rejected int
}

// throughJSON returns a template as another process gets it.
func throughJSON(t testing.TB, tpl *compile.Template) *compile.Template {
	t.Helper()
	text, err := json.Marshal(tpl)
	if err != nil {
		t.Fatal(err)
	}
	out := &compile.Template{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func newTested(p *program.Program) *tested {
	c := compile.New(p)
	return &tested{program: p, compiler: c, pins: c.Pins(), templates: map[template.Key]*compile.Template{}}
}

// compare evaluates a session both ways.
func (x *tested) compare(t *testing.T, s program.Session) {
	t.Helper()
	view := x.program.Views().Of(s)
	tpl, known := x.templates[view.Shape(x.pins)]
	if !known {
		r := x.compiler.Compile(s, x.pins)
		if r.Template == nil && len(r.Untranslated) == 0 {
			return // the session is at fault
		}
		tpl, x.pins = r.Template, r.Pins
		if tpl == nil {
			x.rejected++
		} else {
			tpl = throughJSON(t, tpl)
		}
		x.templates[view.Shape(x.pins)] = tpl
	}
	if tpl == nil {
		return
	}
	got, err := tpl.Eval(view.Values())
	if err != nil {
		x.fallbacks++
		return
	}
	x.hits++
	x.reused += map[bool]int{true: 1}[known]
	want, err := x.program.Evaluate(s)
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("%v\n%v\n-CUE +template:\n%s", s, err, cmp.Diff(want, got))
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.Intn(len(of))] }

var someTexts = []string{"a", "nginx:1.25", "x y", "ü", "<&>", "q\"uote", "back\\slash", "line\nbreak", "", "100m", "128Mi", "3", "*", "\u2028", "{{x}}", "tab\there", "#!"}

// varied returns data with other scalars of the same kinds in some places.
func varied(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			out[name] = e
			if name != "apiVersion" && name != "kind" {
				out[name] = varied(r, e)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, varied(r, e))
		}
		return out
	case string:
		return pick(r, v, v, v, v+strconv.Itoa(r.Intn(100)), pick(r, someTexts...))
	case int64:
		return pick(r, v, v, v+1, int64(r.Intn(100)), v*1_000_000)
	}
	return v
}

// variedSession returns a session of the same shape.
func variedSession(r *rand.Rand, s program.Session) program.Session {
	out := program.Session{CR: varied(r, s.CR).(map[string]any), Live: map[string]map[string]map[string]any{}, Inputs: map[string]program.FoundInput{}, Config: s.Config}
	for component, objects := range s.Live {
		out.Live[component] = map[string]map[string]any{}
		for name, object := range objects {
			out.Live[component][name] = varied(r, object).(map[string]any)
		}
	}
	for name, found := range s.Inputs {
		objects := []map[string]any{}
		for _, o := range found.Objects {
			objects = append(objects, varied(r, o).(map[string]any))
		}
		out.Inputs[name] = program.FoundInput{Several: found.Several, Objects: objects}
	}
	return out
}
