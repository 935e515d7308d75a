package evaluate_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
)

// checkedSession returns a session of a resource, with a value that it asks for and one of a live object.
func checkedSession(uid, name, live string) program.Session {
	s := formSession(1, 1)
	s.CR["metadata"].(map[string]any)["uid"] = uid
	s.CR["spec"], s.Config, s.Inputs = map[string]any{"name": name}, nil, nil
	s.Live = map[string]map[string]map[string]any{"web": {"cm": {
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": map[string]any{"a": live},
	}}}
	return s
}

func TestCUEEvaluatesEachSpecificationBeforeTemplatesAnswer(t *testing.T) {
	t.Parallel()
	p := form{data: "data: {a: cr.spec.name, b: live.web.cm.data.a}"}.load(t)
	counting := &countingBackend{Backend: evaluate.InProcess(p)}
	b := &changedBackend{Backend: counting}
	differ := 0
	e := evaluate.New(p, evaluate.Options{Backend: b, Templates: evaluate.TemplatesChecked, Differs: func(context.Context, program.Session) { differ++ }})
	for _, row := range []struct {
		reason          string
		uid, name, live string
		changed         bool
		asked, differ   int
		says            string
	}{
		{reason: "nobody has evaluated anything", uid: "1", name: "x", live: "a", asked: 1},
		{reason: "only a live object has changed", uid: "1", name: "x", live: "b"},
		{reason: "it has changed once more", uid: "1", name: "x", live: "a"},
		{reason: "the specification has changed", uid: "1", name: "y", live: "a", asked: 1},
		{reason: "that was checked", uid: "1", name: "y", live: "b"},
		{reason: "another resource has the same specification", uid: "2", name: "y", live: "b", asked: 1},
		{reason: "a resource without identity is never checked", name: "y", live: "b", asked: 1},
		{reason: "nor the second time", name: "y", live: "c", asked: 1},
		{reason: "CUE says something else of a specification", uid: "3", name: "z", live: "b", changed: true, asked: 1, differ: 1, says: "something else"},
		{reason: "what was checked before has no template any more", uid: "1", name: "y", live: "d", changed: true, asked: 1, differ: 1, says: "something else"},
	} {
		before := len(counting.asked)
		b.changed = row.changed
		r, err := e.Evaluate(checkedSession(row.uid, row.name, row.live))
		if err != nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		if got := len(counting.asked) - before; got != row.asked || differ != row.differ || r.Unstored != row.says {
			t.Errorf("%s: CUE is asked %d times, want %d; %d differ, want %d; it says %q", row.reason, got, row.asked, differ, row.differ, r.Unstored)
		}
	}
}

// Whether a message rests on a Secret is seen by evaluating twice, and so is asked about some of the answers only.
func TestOneOfTwentyConfirmationsComparesAllThatCUESays(t *testing.T) {
	t.Parallel()
	p := form{data: "data: {a: cr.spec.name, b: live.web.cm.data.a}"}.load(t)
	b := &countingBackend{Backend: evaluate.InProcess(p)}
	e := evaluate.New(p, evaluate.Options{Backend: b, Templates: evaluate.TemplatesChecked})
	for i := range 61 {
		s := checkedSession(fmt.Sprint(i), fmt.Sprint("n", i), "a")
		want, _ := p.Evaluate(s)
		if got, err := e.Evaluate(s); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("resource %d: error %v (-CUE +confirmed):\n%s", i, err, cmp.Diff(want, got))
		}
	}
	asked := map[string]int{}
	for _, what := range b.asked {
		asked[strings.Fields(what)[0]]++
	}
	if diff := cmp.Diff(map[string]int{"compile": 1, "confirm": 57, "evaluate": 3}, asked); diff != "" {
		t.Errorf("of 61 specifications (-want +got):\n%s", diff)
	}
}

func TestASpecificationThatIsInvalidIsNeverChecked(t *testing.T) {
	t.Parallel()
	p := form{root: `#Spec: name: !="bad"`, data: "data: {a: cr.spec.name, b: live.web.cm.data.a}"}.load(t)
	b := &countingBackend{Backend: evaluate.InProcess(p)}
	e := evaluate.New(p, evaluate.Options{Backend: b, Templates: evaluate.TemplatesChecked})
	if _, err := e.Evaluate(checkedSession("1", "good", "a")); err != nil {
		t.Fatal(err)
	}
	for _, live := range []string{"a", "b", "c"} {
		before := len(b.asked)
		if r, err := e.Evaluate(checkedSession("2", "bad", live)); err != nil || len(r.Invalid) == 0 || len(b.asked) != before+1 {
			t.Errorf("it is %v, %v, and CUE is asked %d times", r.Invalid, err, len(b.asked)-before)
		}
	}
}

func TestATemplateForetellsWhatCUEHasNotEvaluatedYet(t *testing.T) {
	t.Parallel()
	p := form{data: "data: {a: cr.spec.name, b: live.web.cm.data.a}"}.load(t)
	b := &countingBackend{Backend: evaluate.InProcess(p)}
	e := evaluate.New(p, evaluate.Options{Backend: b, Templates: evaluate.TemplatesChecked})
	predicted := func(s program.Session) bool {
		t.Helper()
		before := len(b.asked)
		got, known := e.Predict(s)
		if want, _ := p.Evaluate(s); known && !reflect.DeepEqual(got, want) {
			t.Errorf("it predicts something else (-CUE +predicted):\n%s", cmp.Diff(want, got))
		}
		if len(b.asked) != before {
			t.Error("CUE is asked to predict it")
		}
		return known
	}
	evaluated := func(s program.Session) {
		t.Helper()
		if _, err := e.Evaluate(s); err != nil {
			t.Fatal(err)
		}
	}
	first, second := checkedSession("1", "x", "a"), checkedSession("2", "y", "a")
	for range 2 {
		if predicted(first) {
			t.Error("it is predicted without a template")
		}
	}
	if evaluated(first); len(b.asked) != 1 || !strings.HasPrefix(b.asked[0], "compile") {
		t.Errorf("asking for what is not known keeps others from compiling: %v", b.asked)
	}
	if predicted(first) || predicted(checkedSession("1", "x", "b")) {
		t.Error("CUE has evaluated that, so an evaluation costs no more")
	}
	for range 2 {
		if !predicted(second) {
			t.Error("what has a template is not predicted")
		}
	}
	if evaluated(second); len(b.asked) != 2 {
		t.Errorf("what was predicted counts as what CUE has evaluated: %v", b.asked)
	}
	known := 0
	for i := range 100 {
		if predicted(checkedSession(fmt.Sprint(10+i), "z", "a")) {
			known++
		}
	}
	if known != 95 {
		t.Errorf("%d of 100 are predicted, and one of 20 has to be evaluated", known)
	}
	for _, mode := range []evaluate.Templates{evaluate.TemplatesOn, evaluate.TemplatesOff} {
		other := evaluate.New(p, evaluate.Options{Templates: mode})
		if _, err := other.Evaluate(first); err != nil {
			t.Fatal(err)
		}
		if _, known := other.Predict(second); known {
			t.Errorf("with templates %s, an evaluation costs the same", mode)
		}
	}
}

// What CUE confirms is not evaluated again to see what rests on a Secret, so no template may have such a message.
func TestNothingIsConfirmedThatShowsASecret(t *testing.T) {
	t.Parallel()
	const read = `inputs: s: {apiVersion: "v1", kind: "Secret", name: "s"}` + "\n"
	const own = `components: web: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own", stringData: pin: cr.spec.name}` + "\n"
	for name, f := range map[string]form{
		"a predicate on a Secret":               {root: read + `components: web: verify: ok: inputs.s.object.stringData.pin == cr.spec.other`},
		"one by way of a hidden field":          {root: read + "components: web: verify: ok: _pin == \"1\"\n_pin: inputs.s.object.stringData.pin"},
		"when":                                  {root: read + `components: web: when: inputs.s.object.stringData.pin =~ "^12"`},
		"a predicate on what a Secret is of":    {root: own + `components: web: verify: ok: cr.spec.name == "w-1"`},
		"a text that waits":                     {data: "data: a: live.web.cm.data.none + cr.spec.name", root: own},
		"a name with a Secret in it that waits": {data: `data: a: live.web.cm.data["\(cr.spec.name)"]`, root: own},
		"content that is a Secret's":            {data: "data: a: cr.spec.name & =~\"^w-[1-9]\"", root: own + `components: web: verify: ok: live.web.cm.data.none == "x"`},
		"a Secret, and another predicate":       {root: read + own + `components: web: verify: ok: live.web.cm.data.none == cr.spec.mode`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := f.load(t)
			b := &countingBackend{Backend: evaluate.InProcess(p)}
			e := evaluate.New(p, evaluate.Options{Backend: b, Templates: evaluate.TemplatesChecked})
			for i := range 30 {
				s := checkedSession(fmt.Sprint(i), fmt.Sprint("w-", i, "-canary"), "a")
				secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "uid": "u"}, "stringData": map[string]any{"pin": fmt.Sprint(i%3, "24-canary")}}
				s.Inputs = map[string]program.FoundInput{"s": {Objects: []map[string]any{secret}}}
				want, wantErr := p.Evaluate(s)
				if r, known := e.Predict(s); known && !reflect.DeepEqual(r, want) {
					t.Errorf("session %d: it predicts something else (-CUE +predicted):\n%s", i, cmp.Diff(want, r))
				}
				if got, err := e.Evaluate(s); !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("session %d: errors %v and %v (-CUE +confirmed):\n%s", i, wantErr, err, cmp.Diff(want, got))
				}
			}
			t.Logf("CUE was asked %v", b.asked)
			if confirmed := slices.ContainsFunc(b.asked, func(what string) bool { return strings.HasPrefix(what, "confirm") }); !confirmed && strings.Contains(name, "another") {
				t.Error("nothing is confirmed")
			}
		})
	}
}
