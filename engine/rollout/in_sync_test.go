package rollout_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
)

// A predictor is a package that predicts exactly what it says.
type predictor struct{ *program.Program }

// Predict implements rollout.Predictor.
func (p predictor) Predict(s program.Session) (program.Rollout, bool) {
	out, err := p.Program.Evaluate(s)
	return out, err == nil
}

// A resource that is taken for one in sync by mistake is not looked at until something changes.
func TestOnlyAResourceWithNothingToDoIsInSync(t *testing.T) {
	t.Parallel()
	const body = `
components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}
`
	predicted := func(w *world) rollout.Evaluator { return predictor{w.program} }
	asIs := func(*world, *rollout.Input) {}
	for name, row := range map[string]struct {
		reason, body string
		by           func(*world) rollout.Evaluator
		change       func(*world, *rollout.Input)
		want         bool
	}{
		"as it was left":                  {"all is there", body, predicted, asIs, true},
		"a package that predicts nothing": {"nothing is predicted", body, func(*world) rollout.Evaluator { return raw{} }, asIs, false},
		"without any object":              {"what is lost is found again by a rollout", `components: {}`, predicted, asIs, false},
		"with the state of a hook": {
			"a hook may have to run", body, predicted,
			func(_ *world, in *rollout.Input) {
				in.HookStates = map[string]rollout.HookState{"hooks.afterDeploy.migrate": {}}
			}, false,
		},
		"with a patch": {
			"its status tells that there is no such object", body, predicted,
			func(_ *world, in *rollout.Input) {
				in.Patches = []patch.Patch{patchOf("p", "x", "b.o")}
			}, false,
		},
		"somebody asks": {
			"people get what they ask for", body, predicted,
			func(_ *world, in *rollout.Input) { in.Requested = true }, false,
		},
		"a component that is not ready": {
			"the status has to say so", `components: a: objects: o: _deployment & {metadata: name: "a", spec: replicas: 1}`, predicted, asIs, false,
		},
		"a component that cannot be rendered as a whole": {
			"what it has is repaired by a rollout, with the word of the package", body,
			func(w *world) rollout.Evaluator {
				w.change("ConfigMap", "a", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
				w.load(body + `components: a: objects: p: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "p", data: a: live.a.o.data.never}`)
				return predictor{w.program}
			}, asIs, false,
		},
		"an entry of the inventory out of reach": {
			"it is told, and forgotten", body, predicted,
			func(_ *world, in *rollout.Input) {
				in.Inventory = in.Inventory.With("a", nil, []ownership.Entry{{Object: "far", APIVersion: "v1", Kind: "ConfigMap", Namespace: "elsewhere", Name: "far"}})
			}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, row.body)
			w.mustRun()
			w.wrote()
			e := &rollout.Engine{Package: row.by(w), Cluster: w.cluster, Reach: w.program.Reach(), Parallel: 4}
			in := rollout.Input{Owner: w.owner, CR: w.cr(), Inventory: w.inventory}
			row.change(w, &in)
			result, inSync := e.CheckInSync(t.Context(), in)
			if inSync != row.want || inSync && !result.Completion.Ready() {
				t.Errorf("%s: it is in sync: %t, want %t", row.reason, inSync, row.want)
			}
			w.expectWrites("nothing is written because of what is predicted")
		})
	}
}
