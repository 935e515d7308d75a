package rollout_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAReplacementComesBeforeTheDeletion: an object with another name is another object.
func TestAReplacementComesBeforeTheDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name}`)
	w.mustRun()
	w.wrote()
	w.spec["name"] = "store"
	w.mustRun()
	if diff := cmp.Diff([]string{"create ConfigMap store", "delete ConfigMap shop"}, w.wrote()); diff != "" {
		t.Errorf("writes, in order (-want +got):\n%s", diff)
	}
}

// TestAComponentWithoutObjectsHoldsReady: it is a check of others, and what depends on it
// waits for it.
func TestAComponentWithoutObjectsHoldsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: {
	store: objects: o: `+configMap("store", "")+`
	smoke: {dependsOn: store: {}, verify: filled: live.store.o.data.filled == "yes"}
	front: {dependsOn: smoke: {}, objects: o: `+configMap("front", "")+`}
}`)
	result := w.mustRun()
	expectStates(t, result, "store: Verified Verified", "smoke: Applied NotReady", "front: Waiting WaitingForDependency")
	if result.Completion.Ready() {
		t.Error("it is ready before its check holds")
	}
	w.change("ConfigMap", "store", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"filled": "yes"} })
	if result = w.mustRun(); !result.Completion.Ready() {
		t.Errorf("it is not ready: %v", states(result))
	}
}

// TestWhatAPersonHasToChangeIsNotTriedAgain: the same package says the same to the same
// resource.
func TestWhatAPersonHasToChangeIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"InvalidSpec":    `components: a: objects: o: ` + configMap("a", ""),
		"InvalidPackage": `components: a: {dependsOn: b: {}, objects: o: ` + configMap("a", "") + `}` + "\ncomponents: b: dependsOn: a: {}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, body)
			if name == "InvalidSpec" {
				w.spec["size"] = "many"
			}
			result, err := w.run()
			if err != nil || result.RequeueAfter != 0 {
				t.Errorf("it is tried again after %s (error %v)", result.RequeueAfter, err)
			}
			if got := string(result.Completion.Fault.Reason); got != name {
				t.Errorf("the fault is %s, want %s", got, name)
			}
		})
	}
}
