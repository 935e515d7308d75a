package rollout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// TestWhatIsMissingForAnotherReasonDeletesNothing: a component that could use an
// excluded one, and does not need it, is not excluded because it misses something else.
func TestWhatIsMissingForAnotherReasonDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: {
	cache: {when: cr.spec.on, objects: o: `+configMap("cache", "")+`}
	late: objects: o: `+configMap("late", "")+`
	web: objects: o: `+configMap("web", `, data: {cache: *live.cache.o.metadata.name | "none", key: live.late.o.data.key}`)+`
}`)
	w.spec["on"] = false
	w.mustRun()
	w.change("ConfigMap", "late", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"key": "k"} })
	expectStates(t, w.mustRun(), "cache: Excluded Excluded", "late: Verified Verified", "web: Verified Verified")
	w.wrote()
	w.change("ConfigMap", "late", func(u *unstructured.Unstructured) { delete(u.Object, "data") })
	result := w.mustRun()
	w.expectWrites("what web misses is not of the excluded component")
	expectStates(t, result, "cache: Excluded Excluded", "late: Verified Verified", "web: Waiting WaitingForValue")
}

// TestWhatNeedsAnExcludedComponentIsExcluded is the other side: the value can never come.
func TestWhatNeedsAnExcludedComponentIsExcluded(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"a live object":                 "live.cache.o.data.address",
		"an output":                     "components.cache.outputs.address",
		"an output of one that uses it": "components.between.outputs.address",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `
components: {
	cache: {when: cr.spec.on, objects: o: `+configMap("cache", ", data: address: string | *\"a\"")+`, outputs: address: live.cache.o.data.address}
	between: outputs: address: components.cache.outputs.address
	web: objects: o: `+configMap("web", ", data: address: "+value)+`
}`)
			w.mustRun()
			w.expectWrites("all is on", "create ConfigMap cache", "create ConfigMap web")
			w.spec["on"] = false
			w.mustRun()
			w.expectWrites("web cannot be without cache", "delete ConfigMap web", "delete ConfigMap cache")
		})
	}
}

// TestWhatMayUseAnExcludedComponentIsChangedBeforeThatGoes: it is not left with a
// reference to what is not there any more.
func TestWhatMayUseAnExcludedComponentIsChangedBeforeThatGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: {
	cache: {when: cr.spec.on, objects: o: `+configMap("cache", "")+`}
	web: objects: o: `+configMap("web", `, data: cache: *live.cache.o.metadata.name | "none"`)+`
}`)
	w.mustRun()
	w.wrote()
	w.spec["on"] = false
	result := w.mustRun()
	if diff := cmp.Diff([]string{"update ConfigMap web", "delete ConfigMap cache"}, w.wrote()); diff != "" {
		t.Errorf("writes, in order (-want +got):\n%s", diff)
	}
	expectStates(t, result, "cache: Excluded Excluded", "web: Verified Verified")
}

// TestAnObjectThatAnyComponentRendersIsNotDeleted: what moved is deleted in its old
// place only if nobody renders it, whether its new place may be applied or not.
func TestAnObjectThatAnyComponentRendersIsNotDeleted(t *testing.T) {
	t.Parallel()
	const x = `x: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "x"}`
	moves := map[string]struct{ reason, before, after string }{
		"to a component that lacks something": {
			"a requirement holds, and never deletes",
			`components: {a: objects: {` + x + `}, b: objects: y: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "y"}}`,
			`components: {a: {}, b: {requires: r: cr.spec.size > 5, objects: {` + x + `}}}`,
		},
		"to a component that is not decided": {
			"undecided is held",
			`components: {a: objects: {` + x + `}}`,
			`components: {a: {}, b: {when: live.c.o.data.on == "yes", objects: {` + x + `}}, c: objects: o: ` + configMap("c", "") + `}`,
		},
		"to a component that is wrong": {
			"a mistake beside it must not cost the object",
			`components: {a: objects: {` + x + `}}`,
			`components: {a: {}, b: objects: {` + x + `, y: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "y", data: n: cr.spec.name & "other"}}}`,
		},
		"with its component, which has another name": {
			"a component is known by its objects",
			`components: a: objects: {` + x + `}`,
			`components: b: {requires: r: cr.spec.size > 5, objects: {` + x + `}}`,
		},
	}
	for name, m := range moves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, m.before)
			w.mustRun()
			w.load(m.after)
			for range 3 {
				_, _ = w.run()
			}
			for _, wrote := range w.wrote() {
				if strings.HasPrefix(wrote, "delete ConfigMap x") {
					t.Errorf("%s: %s", m.reason, wrote)
				}
			}
			x := w.object("ConfigMap", "x")
			if x == nil {
				t.Fatalf("%s: it is gone", m.reason)
			}
			if _, _, ok := w.inventory.Find(cluster.RefOf(x), w.owner.Namespace); !ok {
				t.Errorf("%s: it is not in the inventory any more", m.reason)
			}
		})
	}
}

// TestAPackageThatLostAllItsObjectsDeletesNothing: components without objects are as
// much of a mistake as no components, unless one was switched off.
func TestAPackageThatLostAllItsObjectsDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: web: {when: cr.spec.on, objects: o: `+configMap("web", "")+`}`)
	w.mustRun()
	w.wrote()
	w.load(`components: web: {when: cr.spec.on, objects: {}}`)
	result := w.mustRun()
	w.expectWrites("nobody said that it should go")
	if got := result.Completion.Fault.Reason; got != "PruneRefused" {
		t.Errorf("the fault is %q, want PruneRefused", got)
	}
	w.spec["on"] = false
	w.mustRun()
	w.expectWrites("when says that it should go", "delete ConfigMap web")
}
