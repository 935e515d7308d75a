package reconcile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/rollout"
)

// expectEvents compares the events since the last call, each as "reason: message".
func (b *bench) expectEvents(when string, want ...string) {
	b.t.Helper()
	var got []string
	for _, e := range b.events {
		got = append(got, e.Reason+": "+e.Message)
	}
	b.events = nil
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("%s: events (-want +got):\n%s", when, diff)
	}
}

// steps takes ten steps, errors or not, and leaves time for each to be written.
func (b *bench) steps() {
	for range 10 {
		_, _ = b.step()
		b.now = b.now.Add(4 * time.Second)
	}
}

func TestEachThingThatHappensInALifeIsOneEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
components: web: {
	objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: {name: "web", labels: size: "\(cr.spec.size)"}}
	policy: settings: apply: "recreateOnImmutable"
	objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "settings", data: size: "\(cr.spec.size)"}
}
components: front: {
	dependsOn: web: {}
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: "front", finalizers: ["example.com/backup"]}}
}
`)
	b.steps()
	b.expectEvents("it is created, and waits", "Created: Created Deployment default/web of component web; Created ConfigMap default/settings of component web")
	b.heal("web", 1)
	b.steps()
	b.expectEvents("it becomes ready", "Created: Created ConfigMap default/front of component front",
		"BecameReady: all components are verified: 2/2")
	b.heal("web", 0)
	b.steps()
	b.expectEvents("it regresses: nothing was done, and nothing failed")
	b.heal("web", 1)
	b.steps()
	b.expectEvents("it recovers", "BecameReady: all components are verified: 2/2")

	b.remove("ConfigMap", "settings")
	b.steps()
	b.expectEvents("somebody deleted an object", "Restored: Restored ConfigMap default/settings of component web: it was gone")

	b.refuse("ConfigMap", "settings", errRefused)
	act(t, b.memory, map[string]any{"size": int64(2)})
	b.steps()
	b.expectEvents("ten tries are refused, and the other object is not changed alone")

	b.refuse("ConfigMap", "settings", apierrors.NewBadRequest("no such field"))
	b.steps()
	b.expectEvents("it is wrong, which a dry run does not tell for certain", "Updated: Updated Deployment default/web of component web", "Failed: web: ConfigMap default/settings: applying: no such field (shop/body.cue:6); front waits for it")

	b.memory.SetAdmission(func(before, after *unstructured.Unstructured) error {
		if before != nil && after != nil && before.GetName() == "settings" {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "settings", field.ErrorList{field.Invalid(field.NewPath("data"), "", "field is immutable")})
		}
		return nil
	})
	b.now = b.now.Add(rollout.RejectedRetryAfter)
	b.steps()
	b.expectEvents("it is offered again, and cannot be changed", "Deleted: Deleted ConfigMap default/settings of component web to recreate it",
		"Created: Created ConfigMap default/settings of component web", "BecameReady: all components are verified: 2/2")

	b.memory.SetAdmission(func(before, after *unstructured.Unstructured) error {
		if after == nil && before.GetKind() == "ConfigMap" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "front", errors.New("the webhook says no"))
		}
		return nil
	})
	act(t, b.memory, deleted)
	b.steps()
	b.expectEvents("ten deletions are refused")
	b.memory.SetAdmission(nil)
	b.steps()
	b.expectEvents("ten times its object is held", "Deleted: Deleted ConfigMap default/front of component front")
	front := b.find("ConfigMap", "front")
	front.SetFinalizers(nil)
	b.put(front.Object)
	b.steps()
	b.expectEvents("and gone", "Deleted: Deleted Deployment default/web of component web; Deleted ConfigMap default/settings of component web")
	if left := b.memory.Refs(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
