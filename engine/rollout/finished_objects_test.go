package rollout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
)

// migration is a Job that removes itself, and what waits for it and reads it.
const migration = `
components: migrate: {
	objects: job: _job & {
		metadata: {name: "migrate", labels: size: "\(cr.spec.size)"}
		spec: {ttlSecondsAfterFinished: 0, template: spec: containers: [{args: [cr.spec.name]}]}
	}
	verify: done: live.migrate.job.status.succeeded >= 1
	outputs: {ended: live.migrate.job.status.completionTime, job: live.migrate.job.metadata.name}
}
components: web: {
	dependsOn: migrate: {}
	objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: components.migrate.outputs}
}
status: migrated: live.migrate.job.status.completionTime
`

// finish makes a Job end with a condition: Complete or Failed.
func (w *world) finish(name, condition string) {
	w.t.Helper()
	w.change("Job", name, func(u *unstructured.Unstructured) { u.Object["status"] = runtime.DeepCopyJSON(endings[condition]) })
}

// vanish makes an object go, and returns its last state.
func (w *world) vanish(kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	last := w.object(kind, name)
	w.delete(last)
	return last
}

// reload gives the inventory the form in which it is stored, as a new process reads it.
func (w *world) reload() {
	w.t.Helper()
	var err error
	if w.inventory, err = ownership.Decode(w.inventory.Encode()); err != nil {
		w.t.Fatal(err)
	}
}

// migrated returns a world whose migration has ended and is gone, as a rollout has seen.
func migrated(t *testing.T, body string) *world {
	t.Helper()
	w := newWorld(t, body)
	w.mustRun()
	w.finish("migrate", "Complete")
	expectStates(t, w.mustRun(), "migrate: Verified Verified", "web: Verified Verified")
	w.vanish("Job", "migrate")
	w.reload()
	w.wrote()
	return w
}

// The patched Job has done its work; nothing is left to be written.
func TestAPatchOfAJobThatCompletedAndRemovedItselfIsApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, migration)
	w.patches = []patch.Patch{{Namespace: "default", Name: "p", Generation: 1, Changes: []patch.Change{{
		Address: "migrate.job", StrategicMerge: map[string]any{"spec": map[string]any{"backoffLimit": int64(1)}},
	}}}}
	w.mustRun()
	w.finish("migrate", "Complete")
	w.mustRun()
	w.vanish("Job", "migrate")
	w.reload()
	expectOutcomes(t, "the Job is done", w.mustRun(), "p migrate.job: Applied")
	w.expectWrites("nothing is left to be written")
}

func TestAJobThatCompletedAndRemovedItselfStaysDone(t *testing.T) {
	t.Parallel()
	w := migrated(t, migration)
	for range 3 {
		r := w.mustRun()
		expectStates(t, r, "migrate: Verified Verified", "web: Verified Verified")
		if diff := cmp.Diff(map[string]any{"migrated": "2026-01-01T00:00:01Z"}, r.Completion.Own); diff != "" {
			t.Errorf("what the Job said last is not known any more (-want +got):\n%s", diff)
		}
		w.reload()
	}
	w.expectWrites("the Job is done")
	w.spec["size"] = int64(2)
	expectStates(t, w.mustRun(), "migrate: Verified Verified", "web: Verified Verified")
	w.expectWrites("a label makes nothing run again")
}

func TestAJobThatIsOnItsWayOutIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, migration)
	w.mustRun()
	w.finish("migrate", "Complete")
	w.change("Job", "migrate", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/keep"}) })
	w.delete(w.object("Job", "migrate"))
	for range 2 {
		expectStates(t, w.mustRun(), "migrate: Verified Verified", "web: Verified Verified")
	}
	w.spec["name"] = "other"
	expectStates(t, w.mustRun(), "migrate: Waiting WaitingForDeletion", "web: Waiting WaitingForDependency")
	w.change("Job", "migrate", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	w.mustRun()
	w.expectWrites("its content changed", "create Job migrate")
}

func TestAJobRunsAnewWhenItsContentChanges(t *testing.T) {
	t.Parallel()
	w := migrated(t, migration)
	w.spec["name"] = "other"
	r := w.mustRun()
	expectStates(t, r, "migrate: Applied NotReady", "web: Waiting WaitingForDependency")
	w.expectWrites("its content changed", "create Job migrate")
	w.reload()
	w.vanish("Job", "migrate")
	w.mustRun()
	w.expectWrites("it was deleted before it was complete", "create Job migrate")
	w.finish("migrate", "Complete")
	w.mustRun()
	w.vanish("Job", "migrate")
	expectStates(t, w.mustRun(), "migrate: Verified Verified", "web: Verified Verified")
	w.expectWrites("it is done with the new content")
	w.spec["name"] = "shop"
	w.mustRun()
	w.expectWrites("what was done before the last time runs again", "create Job migrate")
}

func TestAJobThatVanishesBetweenTwoRolloutsStaysDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, migration)
	w.mustRun()
	w.wrote()
	w.finish("migrate", "Complete")
	last := w.vanish("Job", "migrate")
	w.ended = func(ref cluster.Ref) *unstructured.Unstructured {
		if ref.Identity() != cluster.RefOf(last).Identity() {
			return nil
		}
		return last
	}
	expectStates(t, w.mustRun(), "migrate: Verified Verified", "web: Verified Verified")
	w.expectWrites("only what waited for the Job is written", "create ConfigMap web")
	w.ended = nil
	w.reload()
	expectStates(t, w.mustRun(), "migrate: Verified Verified", "web: Verified Verified")
	w.expectWrites("a new process knows it from the inventory")
}

func TestWhatEndedAsAnotherObjectDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(last *unstructured.Unstructured){
		"it was applied with something else": func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{ownership.AppliedAnnotation: "other", ownership.OwnerAnnotation: u.GetAnnotations()[ownership.OwnerAnnotation]})
		},
		"it was another resource's": func(u *unstructured.Unstructured) {
			refs := u.GetOwnerReferences()
			refs[0].UID, refs[0].Name = "other", "other"
			u.SetOwnerReferences(refs)
		},
		"it had not ended": func(u *unstructured.Unstructured) { delete(u.Object, "status") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, migration)
			w.mustRun()
			w.wrote()
			w.finish("migrate", "Complete")
			last := w.vanish("Job", "migrate")
			change(last)
			w.ended = func(cluster.Ref) *unstructured.Unstructured { return last }
			w.mustRun()
			w.expectWrites(name, "create Job migrate")
		})
	}
}

func TestAFailedJobThatRemovedItselfStaysFailedUntilSomebodyAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, migration)
	w.mustRun()
	w.finish("migrate", "Failed")
	w.mustRun()
	w.vanish("Job", "migrate")
	w.reload()
	for range 2 {
		r := w.mustRun()
		expectStates(t, r, "migrate: Failed ObjectFailed", "web: Waiting WaitingForDependency")
		if got := message(r, "migrate"); !strings.Contains(got, "operetta.dev/reconcile-at") {
			t.Errorf("it does not say how to run it again: %s", got)
		}
	}
	w.expectWrites("it would fail again")
	w.asked = true
	expectStates(t, w.mustRun(), "migrate: Applied NotReady", "web: Waiting WaitingForDependency")
	w.expectWrites("somebody asked", "create Job migrate")
}

func TestAFailedJobThatStaysIsMadeAnewWhenItIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(migration, "ttlSecondsAfterFinished: 0, ", "", 1))
	w.mustRun()
	w.finish("migrate", "Failed")
	w.mustRun()
	w.wrote()
	w.vanish("Job", "migrate")
	w.mustRun()
	w.expectWrites("whoever deletes it wants it to run again", "create Job migrate")
}

func TestAJobThatIsOnlyCreatedIsKnownByWhatItRanWith(t *testing.T) {
	t.Parallel()
	createOnly := migration + `
components: migrate: policy: job: apply: "createOnly"
`
	w := newWorld(t, createOnly)
	w.mustRun()
	w.spec["size"] = int64(2)
	w.mustRun()
	w.finish("migrate", "Complete")
	w.mustRun()
	w.wrote()
	w.vanish("Job", "migrate")
	expectStates(t, w.mustRun(), "migrate: Verified Verified", "web: Verified Verified")
	w.expectWrites("only its label is another one")
}

func TestAPodThatEndsStaysDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: once: objects: pod: {
	apiVersion: "v1", kind: "Pod", metadata: name: "once"
	spec: {restartPolicy: "Never", containers: [{name: "main", image: cr.spec.name}]}
}`)
	// An API server takes no Pod without it, and its controller does not run here.
	w.put("person", object(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, w.site.Namespace, "default"))
	w.mustRun()
	w.change("Pod", "once", func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"phase": "Succeeded", "message": "a secret"}
	})
	w.mustRun()
	w.wrote()
	w.vanish("Pod", "once")
	expectStates(t, w.mustRun(), "once: Verified Verified")
	w.expectWrites("it has ended well")
	// An API server adds fields of its own.
	if e := w.inventory[0].Objects[0]; !strings.Contains(e.Last, `"phase":"Succeeded"`) || strings.Contains(e.Last, "secret") {
		t.Errorf("the inventory keeps %q", e.Last)
	}
	w.spec["name"] = "other"
	w.mustRun()
	w.expectWrites("its content changed", "create Pod once")
}

func TestADoneJobMovesWithItsComponentAndLeavesWithIt(t *testing.T) {
	t.Parallel()
	w := migrated(t, migration)
	renamed := strings.NewReplacer("migrate:", "prepare:", "live.migrate", "live.prepare", "components.migrate", "components.prepare").Replace(migration)
	w.load(renamed)
	expectStates(t, w.mustRun(), "prepare: Verified Verified", "web: Verified Verified")
	w.expectWrites("only the marks of what waits for it change", "update ConfigMap web")
	w.load(`components: web: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}`)
	w.mustRun()
	w.load(migration)
	w.wrote()
	w.mustRun()
	w.expectWrites("what the package had dropped is new", "create Job migrate")
}

func TestAHookThatRemovesItselfIsKnownByHowItEnded(t *testing.T) {
	t.Parallel()
	const hook = `
components: web: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
hooks: afterDeploy: a: objects: job: _job & {metadata: name: "deployed", spec: ttlSecondsAfterFinished: 0}
`
	for _, condition := range []string{"Complete", "Failed"} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, hook)
			w.mustRun()
			w.wrote()
			w.end(condition)
			last := w.vanish("Job", w.all("Job")[0].GetName())
			w.ended = func(cluster.Ref) *unstructured.Unstructured { return last }
			want := map[string]string{"Complete": "hooks.afterDeploy.a: Verified Verified", "Failed": "hooks.afterDeploy.a: Failed HookFailed"}[condition]
			for range 3 {
				expectStates(t, w.mustRun(), "web: Verified Verified", want)
				w.reload()
				w.ended = nil
			}
			w.expectWrites("it runs once")
		})
	}
}
