package rollout_test

import (
	"testing"

	"operetta.dev/test/reword"
)

// What is pruned and what waits is decided by references and data: a version of CUE that
// puts its errors differently deletes nothing more, and nothing less.
func TestWhatIsPrunedDoesNotRestOnWhatCUESays(t *testing.T) {
	for name, value := range map[string]string{
		"a live object":  "live.cache.o.data.address",
		"a text":         `"at \(live.cache.o.data.address)"`,
		"an output":      "components.cache.outputs.address",
		"another's text": "components.between.outputs.address",
	} {
		t.Run(name, func(t *testing.T) {
			reword.CUE(t)
			w := newWorld(t, `
components: {
	cache: {when: cr.spec.on, objects: o: `+configMap("cache", ", data: address: string | *\"a\"")+`, outputs: address: live.cache.o.data.address}
	between: outputs: address: components.cache.outputs.address
	web: objects: o: `+configMap("web", ", data: address: "+value)+`
	wrong: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name!: string}
	waits: objects: o: `+configMap("waits", ", data: a: live.web.o.data.comes")+`
	fails: objects: o: `+configMap("fails", `, data: {a: live.web.o.data.comes, b: len(live.web.o.metadata.name) & "2"}`)+`
}`)
			result := w.mustRun()
			w.expectWrites("all is on", "create ConfigMap cache", "create ConfigMap web")
			expectStates(t, result, "cache: Verified Verified", "between: Verified Verified", "web: Verified Verified", "wrong: Failed InvalidObject", "waits: Waiting WaitingForValue", "fails: Failed InvalidObject")
			w.spec["on"] = false
			w.mustRun()
			w.expectWrites("web cannot be without cache", "delete ConfigMap web", "delete ConfigMap cache")
		})
	}
}
