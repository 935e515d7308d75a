package rollout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/status"
)

// chain is three components: a Deployment waits for configuration, and a front
// for the Deployment to be healthy.
const chain = `
components: config: objects: settings: {
	apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name
	data: size: "\(cr.spec.size)"
}
components: web: {
	dependsOn: config: {}
	objects: deployment: {
		apiVersion: "apps/v1", kind: "Deployment", metadata: name: cr.spec.name
		spec: {
			replicas: cr.spec.size
			selector: matchLabels: app: "shop"
			template: {
				metadata: labels: app: "shop"
				spec: containers: [{name: "web", image: "web:1", ports: [{containerPort: 80}]}]
			}
		}
	}
	outputs: name: live.web.deployment.metadata.name
}
components: front: {
	when: cr.spec.on
	objects: service: {
		apiVersion: "v1", kind: "Service", metadata: name: cr.spec.name
		spec: {selector: app: "shop", ports: [{port: 80}], externalName: components.web.outputs.name}
	}
}
`

func TestARolloutGoesAsFarAsItCan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)

	first := w.mustRun()
	w.expectWrites("what waits for nothing is applied, in one rollout through two layers",
		"create ConfigMap shop", "create Deployment shop")
	expectStates(t, first, "config: Verified Verified", "web: Applied NotReady", "front: Waiting WaitingForDependency")
	if got := message(first, "front"); !strings.HasPrefix(got, "waiting for web to be verified: Deployment "+w.owner.Namespace+"/shop: ") {
		t.Errorf("front says %q, want what it waits for", got)
	}
	if w.protects != 1 {
		t.Errorf("the inventory was stored %d times, want once: before the first write", w.protects)
	}

	w.mustRun()
	w.expectWrites("nothing changed")

	w.available("shop")
	last := w.mustRun()
	w.expectWrites("the front's time has come", "create Service shop")
	expectStates(t, last, "config: Verified Verified", "web: Verified Verified", "front: Verified Verified")
	if !last.Completion.Ready() {
		t.Error("the rollout is not ready")
	}
	for range 100 {
		w.mustRun()
	}
	w.expectWrites("D1: 100 rollouts at rest")
}

func TestAWaitingComponentSaysWhatItsKindAndItsAuthorAwait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain+"components: web: verify: serving: live.web.deployment.status.availableReplicas >= cr.spec.size\n")
	got := message(w.mustRun(), "web")
	kind, author := strings.Index(got, "Deployment "+w.owner.Namespace+"/shop: "), strings.Index(got, "; verify.serving: live.web.deployment.status.availableReplicas >= cr.spec.size: ")
	if kind != 0 || author < 0 || !strings.Contains(got, "body.cue:") {
		t.Errorf("web says %q, want its kind's message, then the predicate with its place", got)
	}
}

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	edits := map[string]struct {
		reason string
		edit   func(u *unstructured.Unstructured)
		want   []string
	}{
		"a changed field": {
			reason: "the field is the package's",
			edit: func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(7), "spec", "replicas")
			},
			want: []string{"update Deployment shop"},
		},
		"a removed label": {
			reason: "E7: label stomping would hide the object from the cache",
			edit:   func(u *unstructured.Unstructured) { u.SetLabels(nil) },
			want:   []string{"update Deployment shop"},
		},
		"a stripped owner reference": {
			reason: "E7: without it nothing deletes the object with its owner",
			edit:   func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) },
			want:   []string{"update Deployment shop"},
		},
		"a foreign annotation": {
			reason: "E8: it is somebody else's",
			edit: func(u *unstructured.Unstructured) {
				a := u.GetAnnotations()
				a["example.com/theirs"] = "yes"
				u.SetAnnotations(a)
			},
		},
		"a foreign container": {
			reason: "E2: lists merge by their keys, and an injected sidecar stays",
			edit: func(u *unstructured.Unstructured) {
				list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
				_ = unstructured.SetNestedSlice(u.Object, append(list, map[string]any{"name": "sidecar", "image": "s:1"}), "spec", "template", "spec", "containers")
			},
		},
		"a defaulted field": {
			reason: "D3: what the API server adds is not the package's",
			edit: func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(10), "spec", "revisionHistoryLimit")
			},
		},
	}
	for name, row := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, chain)
			w.mustRun()
			w.change("Deployment", "shop", row.edit)
			w.mustRun()
			w.expectWrites(row.reason, row.want...)
			w.mustRun()
			w.expectWrites("one repair is enough")
		})
	}
}

func TestReplicasThatAreRenderedNoLongerStayAsTheyAre(t *testing.T) {
	t.Parallel()
	replicas := func(w *world) any {
		n, _, _ := unstructured.NestedFieldNoCopy(w.object("Deployment", "shop").Object, "spec", "replicas")
		return n
	}
	w := newWorld(t, chain)
	w.spec["size"] = int64(5)
	w.mustRun()
	without := strings.Replace(chain, "replicas: cr.spec.size\n", "\n", 1)
	w.load(without)
	w.wrote()
	w.mustRun()
	if got := replicas(w); got != int64(5) {
		t.Errorf("E1: got %v replicas, want the 5 that an autoscaler takes over", got)
	}
	w.change("Deployment", "shop", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(7), "spec", "replicas")
	})
	w.mustRun()
	w.expectWrites("E1: they are the autoscaler's now")
	if got := replicas(w); got != int64(7) {
		t.Errorf("E1: got %v replicas, want the autoscaler's 7", got)
	}
	w.load(chain)
	w.mustRun()
	if got := replicas(w); got != int64(5) {
		t.Errorf("got %v replicas, want the package's 5 again", got)
	}
}

func TestADeletedObjectReturns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	w.mustRun()
	w.delete(w.object("ConfigMap", "shop"))
	w.mustRun()
	w.expectWrites("E7", "create ConfigMap shop")
}

func TestGatesHoldChangesButNotRepair(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	w.mustRun()
	w.available("shop")
	w.mustRun()
	w.change("Deployment", "shop", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(0), "status", "availableReplicas")
	})
	w.delete(w.object("Service", "shop"))
	result := w.mustRun()
	w.expectWrites("F1: the front was there before, and comes back while the web is not healthy", "create Service shop")
	expectStates(t, result, "config: Verified Verified", "web: Applied NotReady", "front: Waiting WaitingForDependency")
}

func TestWhatIsNoLongerWantedIsDeleted(t *testing.T) {
	t.Parallel()
	ready := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t, chain)
		w.mustRun()
		w.available("shop")
		w.mustRun()
		w.wrote()
		return w
	}
	t.Run("a component whose when is false", func(t *testing.T) {
		t.Parallel()
		w := ready(t)
		w.spec["on"] = false
		result := w.mustRun()
		w.expectWrites("it should not exist", "delete Service shop")
		expectStates(t, result, "config: Verified Verified", "web: Verified Verified", "front: Excluded Excluded")
		if _, _, found := w.inventory.Find(cluster.Ref{GroupVersionKind: kinds["Service"], Namespace: w.owner.Namespace, Name: "shop"}, w.owner.Namespace); found {
			t.Error("the deleted Service is still in the inventory")
		}
		if got := result.Completion.Change; got != status.Changed {
			t.Errorf("the change is %s, though an object was deleted", got)
		}
		if got := w.mustRun().Completion.Change; got != status.Unchanged {
			t.Errorf("the change is %s, though nothing is left to be deleted", got)
		}
	})
	t.Run("an object that got another name", func(t *testing.T) {
		t.Parallel()
		w := ready(t)
		w.spec["name"] = "store"
		w.mustRun()
		w.expectWrites("the new ones come first, the old ones go once they are replaced",
			"create ConfigMap store", "delete ConfigMap shop", "create Deployment store", "delete Deployment shop")
	})
	t.Run("a package that lost everything", func(t *testing.T) {
		t.Parallel()
		w := ready(t)
		w.load("")
		result := w.mustRun()
		w.expectWrites("a mistake in a package must not take the running objects with it")
		if got := result.Completion.Fault.Reason; got != status.ReasonPruneRefused {
			t.Errorf("got reason %s, want %s", got, status.ReasonPruneRefused)
		}
	})
}

func TestAForeignObjectIsNeverSeized(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	theirs := object(kinds["ConfigMap"], w.owner.Namespace, "shop")
	theirs.Object["data"] = map[string]any{"theirs": "yes"}
	w.put("kubectl", theirs)
	result := w.mustRun()
	w.expectWrites("E6: neither side is changed")
	expectStates(t, result, "config: Failed OwnedByAnother", "web: Waiting WaitingForDependency", "front: Waiting WaitingForDependency")
	if result.RequeueAfter == 0 {
		t.Error("nothing makes the rollout look again for the object, which no watch of ours reports")
	}
	if got := message(result, "config"); !strings.Contains(got, "belongs to manager kubectl") || !strings.Contains(got, "policy.settings.adopt: true") {
		t.Errorf("config says %q, want the owner and the way out", got)
	}

	w.load(chain + "\ncomponents: config: policy: settings: adopt: true\n")
	w.mustRun()
	w.expectWrites("the package says to take it", "update ConfigMap shop", "create Deployment shop")
}

func TestAnInvalidSpecTouchesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	w.mustRun()
	w.wrote()
	w.spec["size"] = "many"
	result := w.mustRun()
	w.expectWrites("the running objects stay as they are")
	if got := result.Completion.Fault; got.Reason != status.ReasonInvalidSpec || !strings.Contains(got.Message, "spec.size") {
		t.Errorf("got %+v, want InvalidSpec and the path", got)
	}
}

func TestTeardownGoesBackwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	w.mustRun()
	w.available("shop")
	w.mustRun()
	w.change("Service", "shop", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/lb"}) })

	result := w.mustTeardown()
	w.expectWrites("G1: what the front depends on stays until the front is gone", "update Service shop")
	if got := result.Completion.Pruning; !strings.Contains(got, "held by the finalizer example.com/lb") {
		t.Errorf("it says %q, want what holds the Service", got)
	}
	expectStates(t, result, "front: Deleting Deleting", "config: Deleting WaitingForDeletion", "web: Deleting WaitingForDeletion")
	w.change("Service", "shop", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	result = w.mustTeardown()
	if diff := cmp.Diff([]string{"delete Deployment shop", "delete ConfigMap shop"}, w.wrote()); diff != "" {
		t.Errorf("order of deletion (-want +got):\n%s", diff)
	}
	if result.Inventory.Len() != 0 {
		t.Errorf("left in the inventory: %v", result.Inventory)
	}
}

func TestTeardownTakesWhatLostItsLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	w.mustRun()
	w.change("Deployment", "shop", func(u *unstructured.Unstructured) {
		u.SetLabels(nil)
		u.SetFinalizers([]string{"example.com/held"})
	})
	w.mustTeardown()
	w.expectWrites("E7: it is ours by its owner, although no cache holds it", "update Deployment shop")
	w.mustTeardown()
	w.expectWrites("nobody waits for the cache to see the end of it")
	w.change("Deployment", "shop", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	if left := w.mustTeardown().Inventory; left.Len() != 0 {
		t.Errorf("left in the inventory: %v", left)
	}
	w.expectWrites("then the rest goes", "delete ConfigMap shop")
}

func TestTeardownLeavesWhatWasReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	w.mustRun()
	w.available("shop")
	w.mustRun()
	w.change("Deployment", "shop", func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
	result := w.mustTeardown()
	w.expectWrites("G5: the garbage collector has orphaned the Deployment", "delete Service shop", "delete ConfigMap shop")
	if result.Inventory.Len() != 0 {
		t.Errorf("left in the inventory: %v", result.Inventory)
	}
}

func TestAReleasedObjectIsNotTakenBackForADeletedResource(t *testing.T) {
	t.Parallel()
	release := func(w *world, kinds ...string) {
		for _, kind := range kinds {
			w.change(kind, "shop", func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
		}
	}
	for name, row := range map[string]struct {
		reason string
		act    func(w *world, cr *unstructured.Unstructured)
		want   []string
	}{
		"while others are being released": {
			reason: "the garbage collector holds the resource until it is done",
			act: func(w *world, cr *unstructured.Unstructured) {
				cr.SetFinalizers([]string{"example.com/orphan"})
				w.site.Put("collector", cr)
				w.delete(w.site.Find(shopKind, "shop"))
				release(w, "Deployment")
			},
			want: []string{"config: Verified Verified", "web: Waiting WaitingForDeletion", "front: Waiting WaitingForDependency"},
		},
		"after all of them were": {
			reason: "the resource is gone",
			act: func(w *world, cr *unstructured.Unstructured) {
				release(w, "ConfigMap", "Deployment")
				w.delete(cr)
			},
			want: []string{"config: Waiting WaitingForDeletion", "web: Waiting WaitingForDependency", "front: Waiting WaitingForDependency"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, chain)
			w.mustRun()
			row.act(w, w.site.Find(shopKind, "shop"))
			result := w.mustRun()
			w.expectWrites("G5: the deletion of the resource has not been noticed yet: " + row.reason)
			expectStates(t, result, row.want...)
		})
	}
}

func TestAMissingKindIsAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: monitor: objects: probe: {apiVersion: _own, kind: "Probe", metadata: name: "p", spec: every: "1m"}
components: config: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c"}
`)
	result := w.mustRun()
	w.expectWrites("F4: the other component goes on", "create ConfigMap c")
	expectStates(t, result, "monitor: Waiting KindNotServed", "config: Verified Verified")
	if result.RequeueAfter == 0 {
		t.Error("nothing makes the rollout look again for the kind")
	}
	w.site.Serve(w.site.Kind("Probe"))
	w.mustRun()
	w.expectWrites("H1: its definition has appeared", "create Probe p")
}

func TestAnUndecidableWhenHoldsTheComponent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	w.mustRun()
	w.available("shop")
	w.mustRun()
	w.wrote()
	w.load(strings.Replace(chain, "when: cr.spec.on", "when: live.web.deployment.status.observedGenerations > 0", 1))
	result := w.mustRun()
	w.expectWrites("neither created nor deleted")
	expectStates(t, result, "config: Verified Verified", "web: Verified Verified", "front: Held Undecided")
}

func TestAMovedObjectIsNotDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: x: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "x"}
components: b: objects: y: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "y"}
`)
	w.mustRun()
	w.wrote()
	w.load(`components: b: objects: {
	y: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "y"}
	x: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "x"}
}
`)
	w.mustRun()
	w.expectWrites("it only says another component now", "update ConfigMap x")
	if w.object("ConfigMap", "x") == nil {
		t.Error("the moved object is gone")
	}
}
