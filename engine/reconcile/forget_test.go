package reconcile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAHookThatLeavesThePackageIsForgottenAndRunsAgainWhenItComesBack(t *testing.T) {
	t.Parallel()
	const web = `components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
`
	const hook = web + `hooks: afterDeploy: migrate: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "migrate"}
`
	b := newBench(t, hook)
	rollOut := func(body string, want ...string) {
		t.Helper()
		b.load(body)
		b.rest()
		completeJobs(t, b.memory)
		b.rest()
		if diff := cmp.Diff(want, b.hooksRun()); diff != "" {
			t.Errorf("hooks (-want +got):\n%s", diff)
		}
		if got := len(objects(t, b.memory, "Job")); got != len(want) {
			t.Errorf("%d Jobs, want %d", got, len(want))
		}
	}
	rollOut(hook, "hooks.afterDeploy.migrate")
	rollOut(web)
	rollOut(hook, "hooks.afterDeploy.migrate")
}

func TestHooksWhoseNamesAreComputedDoNotPileUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, `hooks: afterDeploy: "migrate-\(cr.spec.size)": objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "migrate"}
`)
	for size := range 5 {
		act(t, b.memory, map[string]any{"size": int64(size)})
		b.rest()
	}
	if diff := cmp.Diff([]string{"hooks.afterDeploy.migrate-4"}, b.hooksRun()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}
