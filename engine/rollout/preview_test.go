package rollout_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// TestAPreviewAddsNoFailure shows that what a preview cannot tell is asked and reported
// once, by the rollout itself.
func TestAPreviewAddsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: child: objects: o: {apiVersion: _own, kind: "Child", metadata: name: "main"}
components: more: objects: {if cr.spec.size > 1 {o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "more"}}}
`)
	kind := w.site.Kind("Child")
	w.site.Serve(kind)
	var answer error
	w.subsystem = func(_ context.Context, k schema.GroupKind) (bool, error) {
		if k != kind.GroupKind() {
			return false, nil
		}
		return true, answer
	}
	w.mustRun()
	w.change("Child", "main", func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "observedGeneration": u.GetGeneration()}}}
	})

	w.spec["size"], answer = int64(2), errors.New("the API server is away")
	_, err := w.run()
	if err == nil || strings.Count(err.Error(), answer.Error()) != 1 {
		t.Errorf("the rollout errors with %v, want that of one question", err)
	}
}

// preview returns what a rollout would do now.
func (w *world) preview() rollout.Preview {
	w.t.Helper()
	ctx, cancel := w.deadline()
	defer cancel()
	e := &rollout.Engine{Package: w.program, Cluster: w.cluster, Reach: w.program.Reach(), Parallel: 4}
	out, err := e.Preview(ctx, rollout.Input{Owner: w.owner, CR: w.cr(), Inventory: w.inventory, HookStates: w.finished, Patches: w.patches})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// previewOf returns what a rollout would do about one component.
func (w *world) previewOf(component string) rollout.ComponentPreview {
	w.t.Helper()
	all := w.preview().Components
	i := slices.IndexFunc(all, func(c rollout.ComponentPreview) bool { return c.Name == component })
	if i < 0 {
		w.t.Fatalf("there is no component %s", component)
	}
	return all[i]
}

func TestAPreviewHasTheHooksWhosePhaseHasCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Split(oneHook, "hooks:")[0])
	w.mustRun()
	w.load(oneHook)
	w.wrote()
	hook := w.previewOf("hooks.afterDeploy.migrate")
	if hook.State != status.Applied || hook.Message != "being run" || len(hook.Objects) != 1 || hook.Objects[0].Action.Decision != ownership.Create {
		t.Errorf("the hook is %s: %q, with the objects %v, want it to be run", hook.State, hook.Message, hook.Objects)
	}
	w.expectWrites("a preview writes nothing")
}

// A closed gate holds changes and not repair, and people look at a preview before they let it happen.
func TestAPreviewHasWhatIsRepairedBehindAClosedGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: web: objects: deployment: _deployment & {metadata: name: "web", spec: replicas: 1}
components: front: {
	dependsOn: web: {}
	objects: page: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "front", data: text: "page"}
}
`)
	w.mustRun()
	w.available("web")
	w.mustRun()
	w.change("Deployment", "web", func(u *unstructured.Unstructured) { delete(u.Object, "status") })
	w.change("ConfigMap", "front", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "drifted", "data", "text")
	})
	front := w.previewOf("front")
	if front.State != status.Waiting || len(front.Objects) != 1 || front.Objects[0].Action.Decision != ownership.Repair {
		t.Errorf("front is %s with the objects %v, want it to wait, and its page to be repaired", front.State, front.Objects)
	}
	if w.mustRun(); len(w.wrote()) != 1 {
		t.Error("the rollout does something else than its preview")
	}
}
