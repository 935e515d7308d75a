package rollout_test

import "testing"

// TestAnObjectThatGetsAnotherNameDuringARolloutIsCreatedAtOnce: what was observed under the name of before is another object, and
// its UID is no precondition of the new one.
func TestAnObjectThatGetsAnotherNameDuringARolloutIsCreatedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: {
	a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: size: "\(cr.spec.size)"}
	b: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b-\(live.a.o.data.size)"}
}`)
	w.mustRun()
	w.wrote()
	w.spec["size"] = int64(2)
	if result := w.mustRun(); !result.Completion.Ready() {
		t.Errorf("it is %+v", result.Completion)
	}
	w.expectWrites("the new one is there before the old one goes", "update ConfigMap a", "create ConfigMap b-2", "delete ConfigMap b-1")
}
