package reconcile_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/program"
)

// A predictor is a package that predicts what it says, right or wrong.
type predictor struct {
	counted

	wrong func(*program.Rollout)
}

// Predict implements rollout.Predictor.
func (p *predictor) Predict(s program.Session) (program.Rollout, bool) {
	out, err := p.Program.Evaluate(s)
	if err == nil && p.wrong != nil {
		p.wrong(&out)
	}
	return out, err == nil
}

// content changes what an object says that is predicted.
func content(text string) func(*program.Rollout) {
	return func(r *program.Rollout) {
		object := &r.Components[0].Objects[0]
		object.Manifest = maps.Clone(object.Manifest)
		object.Manifest["data"] = map[string]any{"text": text}
	}
}

// What is predicted may be wrong: nothing is written because of it, whatever it says.
func TestAResourceAtRestIsNotEvaluatedAfterARestartUnlessThereIsSomethingToDo(t *testing.T) {
	t.Parallel()
	const body = `
components: web: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: text: cr.spec.name}
components: more: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "more"}
status: text: *live.web.map.data.text | ""
requeueAfter: "30s"
`
	drift := func(t *testing.T, b *bench, text string) {
		t.Helper()
		u := b.find("ConfigMap", "web")
		_ = unstructured.SetNestedField(u.Object, text, "data", "text")
		b.put(u.Object)
	}
	status := func(path ...string) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			t.Helper()
			b.edit(func(s map[string]any) { _ = unstructured.SetNestedField(s, "forged", path...) })
		}
	}
	for name, row := range map[string]struct {
		reason string
		change func(*testing.T, *bench)
		wrong  func(*program.Rollout)
		body   string
		// evaluated says that the package has to be asked, and says that text is what the object has afterwards.
		evaluated bool
		says      string
	}{
		"nothing has changed":                         {reason: "that is predicted", says: "shop"},
		"an object was deleted":                       {reason: "it has to be created", change: func(_ *testing.T, b *bench) { b.remove("ConfigMap", "web") }, evaluated: true, says: "shop"},
		"an object has drifted":                       {reason: "it has to be repaired", change: func(t *testing.T, b *bench) { t.Helper(); drift(t, b, "drifted") }, evaluated: true, says: "shop"},
		"the spec was changed":                        {reason: "it may be invalid", change: func(t *testing.T, b *bench) { t.Helper(); act(t, b.memory, map[string]any{"size": int64(2)}) }, evaluated: true, says: "shop"},
		"the status was changed":                      {reason: "it is written", change: status("text"), evaluated: true, says: "shop"},
		"the digest in the status was changed":        {reason: "it is another package for all that is known", change: status("package", "digest"), evaluated: true, says: "shop"},
		"the package is another one":                  {reason: "it says something else", body: `components: web: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: text: "new"}`, evaluated: true, says: "new"},
		"another text is predicted":                   {reason: "it is wrong", wrong: content("wrong"), evaluated: true, says: "shop"},
		"another text is predicted, and is there":     {reason: "it is drift", change: func(t *testing.T, b *bench) { t.Helper(); drift(t, b, "wrong") }, wrong: content("wrong"), evaluated: true, says: "shop"},
		"a component less is predicted":               {reason: "its objects stay", wrong: func(r *program.Rollout) { r.Components = r.Components[:1] }, evaluated: true, says: "shop"},
		"an object less is predicted":                 {reason: "it stays", wrong: func(r *program.Rollout) { r.Components[1].Objects = nil }, evaluated: true, says: "shop"},
		"a component is predicted that should not be": {reason: "its objects stay", wrong: func(r *program.Rollout) { r.Components[1].When.Verdict = program.False }, evaluated: true, says: "shop"},
		"no component is predicted":                   {reason: "all objects stay", wrong: func(r *program.Rollout) { r.Components = nil }, evaluated: true, says: "shop"},
		"another object is predicted":                 {reason: "it is not created", wrong: func(r *program.Rollout) { r.Components[1].Objects[0].Identity.Name = "other" }, evaluated: true, says: "shop"},
		"a hook is predicted":                         {reason: "it does not run", wrong: func(r *program.Rollout) { r.Hooks = []program.Hook{{Phase: program.AfterDeploy}} }, evaluated: true, says: "shop"},
		"another status is predicted":                 {reason: "it is not written", wrong: func(r *program.Rollout) { r.Status = map[string]any{"text": "wrong"} }, evaluated: true, says: "shop"},
		"a component is predicted to be unhealthy": {reason: "the status would say so", wrong: func(r *program.Rollout) {
			r.Components[0].Verify = []program.Predicate{{Name: "up", Verdict: program.False}}
		}, evaluated: true, says: "shop"},
		"it is predicted that the resource is invalid": {reason: "CUE says it better", wrong: func(r *program.Rollout) { r.Invalid = slices.Grow(r.Invalid, 1)[:1] }, evaluated: true, says: "shop"},
		"somebody has asked for it in an annotation":   {reason: "people get what they ask for", change: func(_ *testing.T, b *bench) { b.annotate("operetta.dev/reconcile-at", "now") }, evaluated: true, says: "shop"},
		"the inventory in the status was thrown away":  {reason: "it is found again", change: func(_ *testing.T, b *bench) { b.edit(func(s map[string]any) { delete(s, "inventory") }) }, evaluated: true, says: "shop"},
		"the inventory in the status names one object": {reason: "it is found again", change: func(_ *testing.T, b *bench) {
			b.edit(func(s map[string]any) { s["inventory"] = s["inventory"].([]any)[:1] })
		}, evaluated: true, says: "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, body)
			b.rest()
			b.restart()
			if row.body != "" {
				b.load(row.body)
			}
			if row.change != nil {
				row.change(t, b)
			}
			was := b.find("ConfigMap", "more")
			p := &predictor{counted{Program: b.program}, row.wrong}
			b.now = b.now.Add(10 * time.Second)
			before := len(b.memory.Changes())
			again, err := b.reconciler.Reconcile(t.Context(), shopKey, p)
			if err != nil {
				t.Fatal(err)
			}
			if evaluated := p.evaluations > 0; evaluated != row.evaluated {
				t.Errorf("%s: it is evaluated: %v", row.reason, evaluated)
			}
			if got := b.data("web", "text"); got != row.says {
				t.Errorf("%s: the object says %q, want %q", row.reason, got, row.says)
			}
			if is := b.find("ConfigMap", "more"); row.body == "" && (is == nil || is.GetResourceVersion() != was.GetResourceVersion()) {
				t.Errorf("%s: the other object is %v", row.reason, is)
			}
			if b.find("ConfigMap", "other") != nil {
				t.Errorf("%s: there is one object more", row.reason)
			}
			if n := len(b.memory.Changes()) - before; row.change == nil && row.body == "" && (n > 0 || again != 30*time.Second) {
				t.Errorf("%s: %d writes, and it comes again after %s", row.reason, n, again)
			}
		})
	}
}
