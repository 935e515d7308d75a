package reconcile_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
	"operetta.dev/test/machine"
)

// said returns everything that is said of the resource, byte for byte: its status and
// those of the patches.
func (b *bench) said() string {
	b.t.Helper()
	var all []any
	for _, u := range b.memory.Objects() {
		if u.GetKind() == shopKind.Kind || u.GetKind() == patch.Kind.Kind {
			all = append(all, u.Object["status"])
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// spread has components that are there before, beside and behind the one that waits.
const spread = `
components: before: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "before"}
components: behind: {dependsOn: web: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "behind"}}
components: beside: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "beside"}
components: web: {dependsOn: before: {}, objects: o: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web"}}
status: {size: cr.spec.size, of: web: *live.web.o.metadata.name | "none"}
`

// TestAHundredReconcilesSayTheSameByteForByte is D6.
func TestAHundredReconcilesSayTheSameByteForByte(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	rows := map[string]struct {
		body  string
		begin func(*bench)
		// want is the phase, and status and reason of Ready.
		want string
	}{
		"ready":                     {spread, func(b *bench) { b.steps(); b.heal("web", 1) }, "Ready True Ready"},
		"waiting for health":        {spread, func(*bench) {}, "Waiting False NotReady"},
		"waiting for a requirement": {spread + `components: web: requires: never: cr.spec.size > 1`, func(*bench) {}, "Waiting False WaitingForRequirement"},
		"waiting for a kind":        {spread + `components: web: objects: w: {apiVersion: "example.com/v1", kind: "Widget", metadata: name: "w"}`, func(*bench) {}, "Waiting False KindNotServed"},
		"held":                      {spread + `components: web: when: live.before.o.data.go == "yes"`, func(*bench) {}, "Waiting False Undecided"},
		"refused":                   {spread, func(b *bench) { b.refuse("Deployment", "web", errRefused) }, "Waiting False ApplyFailed"},
		"not answered":              {spread, func(b *bench) { b.steps(); b.reconciler.Cluster = unread{b.memory} }, "Waiting False ApplyFailed"},
		"rejected":                  {spread, func(b *bench) { b.refuse("Deployment", "web", apierrors.NewBadRequest("no such field")) }, "Failed False ObjectRejected"},
		"in the way":                {spread, func(b *bench) { b.put(settings(shopKey.Namespace, "before", nil)) }, "Failed False OwnedByAnother"},
		"out of time":               {spread + `components: web: timeout: "1m"`, func(b *bench) { b.pass(time.Hour) }, "Failed False TimedOut"},
		"a wrong spec":              {spread, func(b *bench) { b.steps(); act(b.t, b.memory, map[string]any{"size": "many"}) }, "Failed False InvalidSpec"},
		"a running hook":            {guarded, func(*bench) {}, "Waiting False HooksRunning"},
		"a failed hook":             {guarded, func(b *bench) { b.steps(); endJobs(b.t, b.memory, "Failed") }, "Failed False HookFailed"},
		"a hook before deletion": {guarded, func(b *bench) {
			b.steps()
			completeJobs(b.t, b.memory)
			b.steps()
			act(b.t, b.memory, deleted)
		}, "Deleting False HooksRunning"},
		"held while it is deleted": {spread, func(b *bench) {
			b.steps()
			b.heal("web", 1)
			b.steps()
			u := b.find("ConfigMap", "behind")
			u.SetFinalizers([]string{"example.com/backup"})
			b.put(u.Object)
			act(b.t, b.memory, deleted)
		}, "Deleting False Deleting"},
		"paused": {spread, func(b *bench) { b.steps(); annotate(b.t, b.memory, reconcile.AnnotationPaused, "true") }, "Waiting False NotReady"},
		"a patch that fits nothing": {spread, func(b *bench) {
			b.memory.Serve(patch.Kind.GroupKind(), cluster.Namespaced)
			b.reconciler.Patches = b.memory
			putPatch(b.t, b.memory, "lost", shopKey.Name, "web.nothing", threeReplicas)
			putPatch(b.t, b.memory, "scaled", shopKey.Name, "web.o", threeReplicas)
		}, "Waiting False NotReady"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, row.body)
			row.begin(b)
			b.steps()
			ready, _ := b.condition(status.ConditionReady)
			if got := fmt.Sprint(b.status()["phase"], " ", ready); got != row.want {
				t.Fatalf("phase and Ready are %q, want %q", got, row.want)
			}
			want, written := b.said(), len(b.memory.Changes())
			var memo *evaluate.Evaluator
			for i := range 100 {
				if i%10 == 0 {
					was := b.reconciler
					b.restart()
					b.reconciler.Cluster, b.reconciler.Patches = was.Cluster, was.Patches
					memo = evaluate.New(b.program, evaluate.Options{})
				}
				_, _ = b.reconciler.Reconcile(t.Context(), shopKey, memo)
				b.now = b.now.Add(4 * time.Second)
				if got := b.said(); got != want {
					t.Fatalf("D6: reconcile %d says something else:\n%s\n%s", i, want, got)
				}
			}
			if all := b.memory.Changes(); len(all) != written {
				t.Errorf("D6: something was written at rest: %v", slices.Clone(all[written:]))
			}
		})
	}
}
