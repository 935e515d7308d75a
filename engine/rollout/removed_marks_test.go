package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
)

// pair is an object with a reference to its owner, and one without.
const pair = `
components: a: {
	objects: near: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "near", data: size: "\(cr.spec.size)"}
	objects: kept: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "kept", data: key: "value"}
	policy: kept: delete: "orphan"
}
`

// newPair returns a world of those objects, rolled out.
func newPair(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, pair)
	w.mustRun()
	w.wrote()
	return w
}

// stripped is the strip that leaves nothing that says whose an object is.
const stripped = "everything, as kubectl replace with the original file does"

// strips are what somebody takes off an object.
var strips = map[string]func(u *unstructured.Unstructured){
	"the annotation": func(u *unstructured.Unstructured) {
		marks := u.GetAnnotations()
		delete(marks, ownership.OwnerAnnotation)
		u.SetAnnotations(marks)
	},
	"all annotations": func(u *unstructured.Unstructured) { u.SetAnnotations(nil) },
	"the label":       func(u *unstructured.Unstructured) { u.SetLabels(nil) },
	stripped: func(u *unstructured.Unstructured) {
		u.SetAnnotations(nil)
		u.SetLabels(nil)
		u.SetOwnerReferences(nil)
	},
}

func TestE7WhatWasTakenOffAnObjectIsPutBack(t *testing.T) {
	t.Parallel()
	for strip, take := range strips {
		for _, name := range []string{"near", "kept"} {
			t.Run(strip+" of "+name, func(t *testing.T) {
				t.Parallel()
				w := newPair(t)
				before := w.object("ConfigMap", name)
				w.change("ConfigMap", name, take)
				result := w.mustRun()
				expectStates(t, result, "a: Verified Verified")
				w.expectWrites("one write mends it", "update ConfigMap "+name)
				after := w.object("ConfigMap", name)
				if after.GetLabels()[ownership.OwnerLabel] == "" || after.GetAnnotations()[ownership.OwnerAnnotation] == "" || len(after.GetOwnerReferences()) != len(before.GetOwnerReferences()) {
					t.Errorf("it has %v %v %v", after.GetLabels(), after.GetAnnotations(), after.GetOwnerReferences())
				}
				w.mustRun()
				w.expectWrites("and then it is at rest")
			})
		}
	}
}

func TestE7WhatWasTakenOffAnObjectDoesNotKeepItFromBeingDeleted(t *testing.T) {
	t.Parallel()
	for strip, take := range strips {
		t.Run(strip, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			for _, name := range []string{"near", "kept"} {
				w.change("ConfigMap", name, take)
			}
			result, err := w.teardown()
			if err != nil || result.Inventory.Len() != 0 {
				t.Errorf("error %v, left in the inventory: %v", err, result.Inventory)
			}
			if strip == stripped {
				w.expectWrites("nothing on the objects says whose they are, and the inventory can be forged")
				if got := eventsAbout(result, "/near"); !slices.Equal(got, []string{"Kept"}) {
					t.Errorf("events %v, want a person to be told of what is left behind", got)
				}
				return
			}
			w.expectWrites("they are its own, and no other trace of them is left", "delete ConfigMap near")
		})
	}
}

func TestE7AnObjectThatIsNotTheOneThatWasWrittenIsNobodys(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	again := w.object("ConfigMap", "near")
	w.delete(again)
	strips[stripped](again)
	w.put("kubectl", again)
	result := w.mustRun()
	w.expectWrites("E6: kubectl replace --force makes another object")
	expectStates(t, result, "a: Failed OwnedByAnother")
	if got := message(result, "a"); !strings.Contains(got, "manager kubectl") {
		t.Errorf("it says %q, want whose it is", got)
	}
}

func TestE7AnObjectThatWasStrippedIsPutBackBehindAClosedGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	w.mustRun()
	w.available("shop")
	w.mustRun()
	w.change("Deployment", "shop", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(0), "status", "availableReplicas")
	})
	w.change("Service", "shop", strips[stripped])
	w.mustRun()
	w.expectWrites("F1: it is repaired towards what was applied", "update Service shop")
}

func TestTheInventoryKnowsWhatItHasWrittenByItsUID(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	for _, name := range []string{"near", "kept"} {
		u := w.object("ConfigMap", name)
		e, _, found := w.inventory.Find(cluster.RefOf(u), w.owner.Namespace)
		if !found || e.UIDPrefix == "" || !strings.HasPrefix(string(u.GetUID()), e.UIDPrefix) || len(e.UIDPrefix) > 8 {
			t.Errorf("%s has the UID %s, and the inventory %+v", name, u.GetUID(), e)
		}
	}
}

// TestTheEndOfAnObjectThatNoCacheHasIsLookedFor: no event tells of it.
func TestTheEndOfAnObjectThatNoCacheHasIsLookedFor(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body   string
		remove func(w *world) (rollout.Result, error)
	}{
		"torn down": {pair, (*world).teardown},
		"pruned": {
			strings.Replace(pair, "components: a: {", "components: b: objects: o: "+configMap("o", "")+"\ncomponents: a: {when: cr.spec.on\n", 1),
			func(w *world) (rollout.Result, error) {
				w.spec["on"] = false
				return w.run()
			},
		},
	} {
		for _, unlabelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, unlabelled %v", name, unlabelled), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, row.body)
				w.mustRun()
				w.change("ConfigMap", "near", func(u *unstructured.Unstructured) {
					if unlabelled {
						strips["the label"](u)
					}
					u.SetFinalizers([]string{"example.com/held"})
				})
				result, err := row.remove(w)
				if err != nil || (result.RequeueAfter > 0) != unlabelled {
					t.Errorf("error %v, again in %s", err, result.RequeueAfter)
				}
				w.change("ConfigMap", "near", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
			})
		}
	}
}

// TestA5NothingIsMadeAnewForAResourceThatIsGone: the garbage collector has taken the object,
// and the deletion of the resource has not reached this process yet.
func TestA5NothingIsMadeAnewForAResourceThatIsGone(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.delete(w.object("ConfigMap", "near"))
	w.delete(w.site.Find(shopKind, w.owner.Name))
	result := w.mustRun()
	expectStates(t, result, "a: Waiting WaitingForDeletion")
	if text := message(result, "a"); !strings.Contains(text, "its Shop is being deleted") {
		t.Errorf("the message is %q", text)
	}
	w.expectWrites("it would be an orphan")
}

// TestWhatIsOnlyEverCreatedIsMarkedAnewBesideAChange: its content is not written, so whether
// the API server would take that does not matter.
func TestWhatIsOnlyEverCreatedIsMarkedAnewBesideAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: {
	objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "settings", data: size: "\(cr.spec.size)"}
	objects: setup: _job & {metadata: name: "setup", spec: template: metadata: annotations: size: "\(cr.spec.size)"}
	policy: setup: {apply: "createOnly", verify: "exists"}
}
`)
	w.mustRun()
	w.change("Job", "setup", strips[stripped])
	w.spec["size"] = 2
	w.mustRun()
	w.expectWrites("the one is changed, and the other one marked", "update ConfigMap settings", "update Job setup")
	if ownership.LacksOwnerReference(w.object("Job", "setup"), w.owner) {
		t.Error("it does not refer to its owner")
	}
}
