package evaluate_test

import (
	"reflect"
	"testing"
	"time"

	"operetta.dev/engine/evaluate"
)

// A condition over the resource has a template for each outcome, and not for each value.
func TestAConditionHasATemplateForEachOutcome(t *testing.T) {
	t.Parallel()
	rows := []struct {
		reason    string
		form      form
		templates int
	}{
		{"a number", form{data: `if cr.spec.size > 5 {data: a: "\(cr.spec.size)"}`}, 2},
		{"a number by another name", form{data: `if _big {data: a: "\(cr.spec.size)"}`, root: `_big: cr.spec.size > 5`}, 2},
		{"two conditions of which three combinations occur", form{data: `{if cr.spec.size > 5 {data: a: "x"}, if cr.spec.size > 9 {data: b: "y"}}`}, 3},
		{"a text", form{data: `if cr.spec.name != "w-3" {data: a: cr.spec.name}`}, 2},
		{"a let is what it stands for", form{data: `let N = "n-\(cr.spec.name)", data: a: N`}, 1},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			p := row.form.load(t)
			b := &observedBackend{Backend: evaluate.InProcess(p)}
			clock := time.Unix(0, 0)
			e := evaluate.New(p, evaluate.Options{Backend: b, Now: func() time.Time { clock = clock.Add(time.Hour); return clock }})
			for i := range int64(14) {
				s := formSession(i+1, 0)
				spec, _ := s.CR["spec"].(map[string]any)
				spec["on"], spec["mode"], spec["ratio"], s.Config = true, "a", 1.5, nil
				want, err := p.Evaluate(s)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := e.Evaluate(s); err != nil || !reflect.DeepEqual(want, got) {
					t.Fatalf("session %d differs: %v", i, err)
				}
			}
			if b.templates != row.templates || b.failures > 0 {
				t.Errorf("there are %d templates, want %d; %v", b.templates, row.templates, b.reasons)
			}
		})
	}
}
