package rollout_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/rollout"
)

// twoHooks is a component with two hooks in one phase, and one in the next.
const twoHooks = `
components: web: objects: deployment: _deployment & {metadata: name: "shop", spec: replicas: cr.spec.size}
hooks: {
	afterDeploy: migrate: objects: job: _job & {metadata: name: "migrate"}
	afterDeploy: warm: objects: job: _job & {metadata: name: "warm"}
	afterVerify: notify: objects: job: _job & {metadata: name: "notify"}
	afterVerifyUnsuccessful: alarm: objects: job: _job & {metadata: name: "alarm"}
}
`

// expectJobs compares the Jobs that are there.
func (w *world) expectJobs(reason string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.jobs()); diff != "" {
		w.t.Errorf("%s: Jobs (-want +got):\n%s", reason, diff)
	}
}

func TestHooksOfOnePhaseRunSideBySide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoHooks)
	w.mustRun()
	w.available("shop")
	w.mustRun()
	w.expectJobs("neither waits for the other", "migrate", "warm")

	w.end("Failed", "warm")
	result := w.mustRun()
	expectStates(t, result, "web: Verified Verified", "hooks.afterDeploy.migrate: Applied HooksRunning", "hooks.afterDeploy.warm: Failed HookFailed")
	w.end("Complete", "migrate")
	result = w.mustRun()
	expectStates(t, result, "web: Verified Verified", "hooks.afterDeploy.migrate: Verified Verified", "hooks.afterDeploy.warm: Failed HookFailed")
	w.expectJobs("the next phase comes after all hooks of this one", "migrate", "warm")

	w.delete(w.all("Job")[1])
	w.mustRun()
	w.end("Complete", "warm")
	w.mustRun()
	w.expectJobs("the failed one alone has run again, and the next phase has begun", "migrate", "notify", "warm")
	w.end("Complete", "notify")
	if done := w.mustRun(); !done.Completion.Ready() {
		t.Errorf("states %v", states(done))
	}
}

func TestAHookIsLeftAsItIsWhileAComponentRegresses(t *testing.T) {
	t.Parallel()
	// begun returns a world whose afterVerify hook is running.
	begun := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t, twoHooks)
		w.mustRun()
		w.end("Complete", "migrate")
		w.end("Complete", "warm")
		w.available("shop")
		w.mustRun()
		w.expectJobs("the last phase has come", "migrate", "notify", "warm")
		return w
	}
	regress := func(w *world) rollout.Result {
		w.change("Deployment", "shop", func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, int64(0), "status", "availableReplicas")
		})
		w.wrote()
		return w.mustRun()
	}
	t.Run("after it has succeeded", func(t *testing.T) {
		t.Parallel()
		w := begun(t)
		w.end("Complete", "notify")
		w.mustRun()
		result := regress(w)
		w.expectWrites("what the hook has left is neither deleted nor run again")
		expectStates(t, result, "web: Applied NotReady", "hooks.afterDeploy.migrate: Verified Verified", "hooks.afterDeploy.warm: Verified Verified")
		if result.Completion.Ready() {
			t.Error("it is ready")
		}
		w.available("shop")
		w.wrote()
		if done := w.mustRun(); !done.Completion.Ready() {
			t.Errorf("states %v after it has recovered", states(done))
		}
		w.expectWrites("its content has run")
	})
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		w := begun(t)
		regress(w)
		w.expectWrites("it goes on")
		w.end("Complete", "notify")
		if result := w.mustRun(); result.Completion.Ready() {
			t.Error("it is ready because the hook is")
		}
		w.available("shop")
		if done := w.mustRun(); !done.Completion.Ready() {
			t.Errorf("states %v: the hook has ended meanwhile", states(done))
		}
		w.expectWrites("it ran once")
	})
	t.Run("and then fails", func(t *testing.T) {
		t.Parallel()
		w := begun(t)
		w.end("Complete", "notify")
		w.mustRun()
		w.stall()
		failed := w.mustRun()
		w.expectJobs("the hook of failure runs beside what success has left", "alarm", "migrate", "notify", "warm")
		expectStates(t, failed, "web: Failed ObjectFailed", "hooks.afterDeploy.migrate: Verified Verified", "hooks.afterDeploy.warm: Verified Verified",
			"hooks.afterVerifyUnsuccessful.alarm: Applied HooksRunning")
		w.available("shop")
		if done := w.mustRun(); !done.Completion.Ready() {
			t.Errorf("states %v: a hook of failure keeps nobody from recovering", states(done))
		}
	})
}
