package rollout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/rollout"
)

// reasons returns the reasons of the events of a rollout.
func reasons(r rollout.Result) []string {
	var out []string
	for _, e := range r.Events {
		out = append(out, e.Reason)
	}
	return out
}

func TestAWriteIsAnEventThatSaysWhatItWas(t *testing.T) {
	t.Parallel()
	const settings = `
components: web: {policy: o: adopt: true, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: text: "TEXT"}}
`
	w := newWorld(t, strings.Replace(settings, "TEXT", "a", 1))
	expect := func(reason string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, reasons(w.mustRun())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	w.put("somebody", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": w.owner.Namespace}, "data": map[string]any{"text": "theirs"},
	}})
	expect("an object of somebody else is taken over", "Adopted")
	expect("nothing is written")
	w.load(strings.Replace(settings, "TEXT", "b", 1))
	expect("the package says something else", "Updated")
	w.change("ConfigMap", "web", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "drifted", "data", "text")
	})
	expect("somebody has changed it", "Repaired")
	w.delete(w.object("ConfigMap", "web"))
	expect("somebody has deleted it", "Restored")
}

func TestHooksBeforeDeletionOfWhatWasNeverCreatedSayWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
inputs: token: {apiVersion: "v1", kind: "Secret", name: "token"}
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: n: inputs.token.object.data.n}
hooks: beforeDelete: backup: objects: job: _job & {metadata: name: "backup", spec: completions: inputs.token.object.data.n}
`)
	w.mustRun()
	result, done, err := w.beforeDelete()
	if !done || err != nil || !result.Completion.Deleting {
		t.Fatalf("done %v, error %v, deleting %v", done, err, result.Completion.Deleting)
	}
	if len(result.Events) != 1 || !strings.Contains(result.Events[0].Message, "hooks.beforeDelete.backup: ") {
		t.Errorf("the event does not say what was awaited: %v", result.Events)
	}
}
