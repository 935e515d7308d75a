package reconcile_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/rollout"
)

func TestWhatTheAPIServerRejectsIsOfferedAgainWhenSomethingHasChanged(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		change func(b *bench)
		offers int // in ten steps after the change
	}{
		"nothing changes": {
			"it would only be rejected again", func(*bench) {}, 0,
		},
		"another object is repaired": {
			"that has nothing to do with it", func(b *bench) { b.remove("ConfigMap", "beside") }, 0,
		},
		"five minutes pass": {
			"what rejected it may have changed", func(b *bench) { b.now = b.now.Add(rollout.RejectedRetryAfter) }, 1,
		},
		"the user changes the resource": {
			"that may be the correction", func(b *bench) { act(b.t, b.memory, map[string]any{"size": int64(2)}) }, 1,
		},
		"the package changes": {
			"that may be the correction", func(b *bench) {
				b.load(rejectable + "\ncomponents: more: objects: o: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"more\"}")
			}, 1,
		},
		"somebody deletes the object": {
			"a new one may be accepted", func(b *bench) { b.remove("ConfigMap", "wrong") }, 1,
		},
		"the process is started anew": {
			"what is only remembered is forgotten, and offered once", (*bench).restart, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, rejectable)
			b.rest()
			offers := 0
			b.memory.SetAdmission(func(_, after *unstructured.Unstructured) error {
				if after == nil || after.GetName() != "wrong" {
					return nil
				}
				offers++
				return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "wrong", field.ErrorList{field.Invalid(field.NewPath("data"), "", "field is immutable")})
			})
			act(t, b.memory, map[string]any{"size": int64(3)})
			tenSteps(b)
			// The remedy is looked for by a probe.
			if offers != 2 {
				t.Fatalf("at first it was offered %d times, want once, and one probe", offers)
			}
			offers = 0
			row.change(b)
			tenSteps(b)
			if got := min(offers, row.offers); got != row.offers || offers > 2*row.offers {
				t.Errorf("%s: it was offered %d times, want %d, each with a probe at most", row.reason, offers, row.offers)
			}
		})
	}
}

// What is changed together is asked about before the first of it is written. The answer is remembered, too.
func TestWhatKeepsAChangeFromBeingMadeIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
components: web: objects: {
	right: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "right", data: size: "\(cr.spec.size)"}
	wrong: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "wrong", data: size: "\(cr.spec.size)"}
}`)
	b.rest()
	offers := map[string]int{}
	b.memory.SetAdmission(func(_, after *unstructured.Unstructured) error {
		if after == nil || after.GetKind() != "ConfigMap" {
			return nil
		}
		offers[after.GetName()]++
		if after.GetName() != "wrong" {
			return nil
		}
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "wrong", field.ErrorList{field.Invalid(field.NewPath("data"), "", "field is immutable")})
	})
	act(t, b.memory, map[string]any{"size": int64(3)})
	tenSteps(b)
	b.expect("the change is not made", "False ObjectRejected", "wrong")
	if offers["right"] != 0 || b.data("right", "size") != "1" {
		t.Errorf("the other object was offered %d times, and has size %s", offers["right"], b.data("right", "size"))
	}
	if offers["wrong"] != 2 { // the remedy is looked for by a probe
		t.Errorf("it was offered %d times, want once, and one probe", offers["wrong"])
	}
}

// rejectable is a package with an object that a test has rejected, and one beside it.
const rejectable = `
components: web: objects: wrong: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "wrong", data: size: "\(cr.spec.size)"}
components: beside: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "beside"}
`

// tenSteps takes ten steps, as ten events would.
func tenSteps(b *bench) {
	b.t.Helper()
	for range 10 {
		if _, err := b.step(); err != nil {
			b.t.Fatal(err)
		}
		b.now = b.now.Add(time.Second)
	}
}
