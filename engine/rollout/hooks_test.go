package rollout_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// phases is two components with a hook of each phase.
const phases = `
components: web: objects: deployment: _deployment & {metadata: name: cr.spec.name, spec: replicas: cr.spec.size}
components: config: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name}
hooks: {
	afterDeploy: a: objects: job: _job & {metadata: name: "deployed"}
	afterDeployUnsuccessful: b: objects: job: _job & {metadata: name: "not-deployed"}
	afterVerify: c: objects: job: _job & {metadata: name: "verified"}
	afterVerifyUnsuccessful: d: objects: job: _job & {metadata: name: "not-verified"}
	beforeDelete: e: objects: job: _job & {metadata: name: "deleting"}
}
`

// jobs returns the names of the Jobs without the digests of their content, sorted.
func (w *world) jobs() []string {
	w.t.Helper()
	var out []string
	for _, u := range w.all("Job") {
		out = append(out, u.GetName()[:strings.LastIndex(u.GetName(), "-")])
	}
	return out
}

// endings are the statuses of Jobs that have ended, by the condition that says so.
var endings = map[string]map[string]any{
	"Complete": {
		"succeeded": int64(1), "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:01Z",
		"conditions": []any{ended("SuccessCriteriaMet"), ended("Complete")},
	},
	"Failed": {
		"failed": int64(1), "startTime": "2026-01-01T00:00:00Z",
		"conditions": []any{ended("FailureTarget"), ended("Failed")},
	},
}

func ended(condition string) map[string]any {
	return map[string]any{
		"type": condition, "status": "True", "reason": "BackoffLimitExceeded", "message": "it ended",
		"lastProbeTime": "2026-01-01T00:00:01Z", "lastTransitionTime": "2026-01-01T00:00:01Z",
	}
}

// end makes the Jobs of some hooks, or of all, end that run, with a condition: Complete
// or Failed.
func (w *world) end(condition string, hooks ...string) {
	w.t.Helper()
	for _, u := range w.all("Job") {
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		meant := func(hook string) bool { return strings.HasPrefix(u.GetName(), hook+"-") }
		if len(conditions) > 0 || (len(hooks) > 0 && !slices.ContainsFunc(hooks, meant)) {
			continue
		}
		w.change("Job", u.GetName(), func(u *unstructured.Unstructured) {
			u.Object["status"] = runtime.DeepCopyJSON(endings[condition])
		})
	}
}

// stall makes the Deployment fail for good.
func (w *world) stall() {
	w.change("Deployment", "shop", func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "conditions": []any{
			map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"},
		}}
	})
}

func TestEachPhaseHasItsHooks(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason string
		body   string
		spec   map[string]any
		act    func(w *world)
		want   []string
	}{
		"everything is applied and something is not healthy yet": {
			reason: "the deploy phase is over, the verify phase is not",
			want:   []string{"deployed"},
		},
		"everything is healthy": {
			reason: "the hook of the deploy phase comes first, and is verified itself",
			act: func(w *world) {
				w.available("shop")
				w.mustRun()
				w.end("Complete")
			},
			want: []string{"deployed", "verified"},
		},
		"everything is healthy but the hook before": {
			reason: "afterVerify waits for the hooks of the deploy phase",
			act:    func(w *world) { w.available("shop") },
			want:   []string{"deployed"},
		},
		"the hook of the deploy phase fails": {
			reason: "neither of the next phase's hooks is for that",
			act: func(w *world) {
				w.available("shop")
				w.mustRun()
				w.end("Failed")
			},
			want: []string{"deployed"},
		},
		"a component is wrong": {
			reason: "it could not be applied",
			body:   "\ncomponents: wrong: objects: x: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"x\", data: size: \"\\(cr.spec.size)\" & =~\"^1\"}\n",
			spec:   map[string]any{"size": int64(2)},
			want:   []string{"not-deployed"},
		},
		"a component merely waits": {
			reason: "that is neither success nor failure",
			body:   "\ncomponents: later: {requires: never: cr.spec.size > 5, objects: x: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"x\"}}\n",
			want:   nil,
		},
		"a component is excluded": {
			reason: "it should not be there, so that all that should be is",
			body:   "\ncomponents: later: {when: false, objects: x: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"x\"}}\n",
			want:   []string{"deployed"},
		},
		"an applied component fails": {
			reason: "everything was applied, and could not be verified",
			act:    (*world).stall,
			want:   []string{"deployed", "not-verified"},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, phases+row.body)
			maps.Copy(w.spec, row.spec)
			w.mustRun()
			if row.act != nil {
				row.act(w)
			}
			w.mustRun()
			w.mustRun()
			if diff := cmp.Diff(row.want, w.jobs()); diff != "" {
				t.Errorf("%s: hooks (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

const oneHook = `
components: config: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name}
hooks: afterDeploy: migrate: objects: job: _job & {metadata: name: "migrate", spec: completions: cr.spec.size}
`

func TestAHookRunsOncePerContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneHook)
	if w.mustRun().Completion.Ready() {
		t.Error("it is ready before its hook has ended")
	}
	w.end("Complete")
	done := w.mustRun()
	if !done.Completion.Ready() {
		t.Errorf("it is not ready: %v", states(done))
	}
	first := w.all("Job")[0]
	w.delete(first)
	for range 3 {
		if !w.mustRun().Completion.Ready() {
			t.Error("it is not ready once the finished Job is gone by its time to live")
		}
	}
	w.expectWrites("a finished hook does not run again")

	w.spec["size"] = int64(2)
	w.mustRun()
	w.end("Complete")
	w.mustRun()
	if got := w.all("Job"); len(got) != 1 || got[0].GetName() == first.GetName() {
		t.Errorf("another content runs under another name, and once: %v", got)
	}

	w.spec["size"] = int64(3)
	w.mustRun()
	w.end("Complete")
	w.mustRun()
	if got := w.all("Job"); len(got) != 1 {
		t.Errorf("%d Jobs are there, want the latest one alone", len(got))
	}
}

func TestAFailedHookRunsAgainWhenItsObjectsAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneHook)
	w.mustRun()
	w.end("Failed")
	w.mustRun()
	failed := w.mustRun()
	w.expectWrites("it is not tried again by itself")
	expectStates(t, failed, "config: Verified Verified", "hooks.afterDeploy.migrate: Failed HookFailed")
	if got := message(failed, "hooks.afterDeploy.migrate"); !strings.Contains(got, "; delete Job "+w.owner.Namespace+"/migrate-") || !strings.Contains(got, " to run the hook again") {
		t.Errorf("it says %q, want the object and the way out", got)
	}
	w.delete(w.all("Job")[0])
	w.mustRun()
	w.end("Complete")
	if done := w.mustRun(); !done.Completion.Ready() {
		t.Errorf("after the second try: %v", states(done))
	}
}

func TestAHookThatShouldNotBeIsTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneHook+"hooks: afterDeploy: migrate: when: cr.spec.on\n")
	w.mustRun()
	w.end("Complete")
	w.mustRun()
	w.spec["on"] = false
	if done := w.mustRun(); !done.Completion.Ready() || len(w.all("Job")) != 0 {
		t.Errorf("states %v, Jobs %v", states(done), w.jobs())
	}
}

// undecidedHooks are hooks whose existence rests on what the Deployment says of itself.
const undecidedHooks = `
components: web: objects: deployment: _deployment & {metadata: name: cr.spec.name, spec: replicas: cr.spec.size}
hooks: afterDeploy: {
	always: objects: job: _job & {metadata: name: "always"}
	if live.web.deployment.status.availableReplicas > 1 {NAME: objects: job: _job & {metadata: name: "migrate"}}
}
hooks: afterVerify: notify: objects: job: _job & {metadata: name: "notify"}
hooks: beforeDelete: {
	if live.web.deployment.status.availableReplicas > 0 {NAME: objects: job: _job & {metadata: name: "backup"}}
}
`

func TestAnUndecidedHookIsHeldAndNeverPassedOver(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ reason, name, held string }{
		"by its name":    {reason: "the text shows which hook it may be", name: "migrate", held: "hooks.afterDeploy.migrate"},
		"with its phase": {reason: "its name is computed, so that one stands for all of the phase", name: `"\(live.web.deployment.metadata.name)-1"`, held: "hooks.afterDeploy.*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.ReplaceAll(undecidedHooks, "NAME", row.name))
			w.spec["size"] = int64(2)
			w.mustRun()
			w.end("Complete")
			unknown := w.mustRun()
			expectStates(t, unknown, "web: Applied NotReady", "hooks.afterDeploy.always: Verified Verified", row.held+": Held Undecided")
			if got := message(unknown, row.held); !strings.Contains(got, "live.web.deployment.status") || !strings.Contains(got, "is not there yet") || !strings.Contains(got, "body.cue:") {
				t.Errorf("%s: it says %q, want what is missing and where that is written", row.reason, got)
			}

			w.available("shop")
			w.mustRun()
			w.end("Complete")
			w.mustRun()
			if diff := cmp.Diff([]string{"always", "migrate", "notify"}, w.jobs()); diff != "" {
				t.Fatalf("%s: hooks once it is decided (-want +got):\n%s", row.reason, diff)
			}
			w.end("Complete")
			if !w.mustRun().Completion.Ready() {
				t.Fatal("it is not ready once all hooks have ended")
			}

			// The status goes: what the hook left must not go with it.
			w.change("Deployment", "shop", func(u *unstructured.Unstructured) { delete(u.Object, "status") })
			again := w.mustRun()
			w.expectWrites(row.reason)
			if again.Completion.Ready() {
				t.Errorf("%s: it is ready although it is not known whether a hook is to run", row.reason)
			}
			if _, done, err := w.beforeDelete(); done || err != nil {
				t.Errorf("%s: done %v, error %v: the deletion goes on although it is not known whether a hook comes before it", row.reason, done, err)
			}
			w.available("shop")
			if _, done, err := w.beforeDelete(); done || err != nil || !slices.Contains(w.jobs(), "backup") {
				t.Errorf("%s: done %v, error %v, Jobs %v once the hook before deletion is decided", row.reason, done, err, w.jobs())
			}
		})
	}
}

func TestAnUndecidedHookThatIsDecidedNotToBeIsPassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.ReplaceAll(undecidedHooks, "NAME", "migrate"))
	w.mustRun()
	w.end("Complete")
	w.available("shop")
	w.mustRun()
	w.end("Complete")
	if done := w.mustRun(); !done.Completion.Ready() || !slices.Equal(w.jobs(), []string{"always", "notify"}) {
		t.Errorf("states %v, Jobs %v", states(done), w.jobs())
	}
}

func TestAHookWaitsForWhatItRequires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneHook+"hooks: afterDeploy: migrate: requires: big: cr.spec.size > 1\n")
	expectStates(t, w.mustRun(), "config: Verified Verified", "hooks.afterDeploy.migrate: Waiting WaitingForRequirement")
	w.spec["size"] = int64(2)
	expectStates(t, w.mustRun(), "config: Verified Verified", "hooks.afterDeploy.migrate: Applied HooksRunning")
}

// beforeDelete runs the hooks before deletion and keeps their inventory.
func (w *world) beforeDelete() (rollout.Result, bool, error) {
	e := &rollout.Engine{Package: w.program, Cluster: w.cluster}
	result, done, err := e.BeforeDelete(context.Background(), rollout.Input{
		Owner: w.owner, CR: w.cr(), Inventory: w.inventory, HookStates: w.finished,
		StoreWriteAhead: func(_ context.Context, p rollout.WriteAhead) error {
			if !p.Preview.Deleting {
				w.t.Error("the status says that the resource is not being deleted")
			}
			w.inventory = p.Inventory
			return nil
		},
	})
	w.inventory, w.finished = result.Inventory, result.HookStates
	return result, done, err
}

func TestHooksBeforeDeletionComeBeforeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, phases)
	w.mustRun()
	if _, done, err := w.beforeDelete(); done || err != nil {
		t.Fatalf("done %v, error %v while the hook runs", done, err)
	}
	if !slices.Contains(w.jobs(), "deleting") {
		t.Fatalf("the hook does not run: %v", w.jobs())
	}
	w.end("Failed")
	failed, done, err := w.beforeDelete()
	if done || err != nil || failed.Completion.Components[0].Reason != status.ReasonHookFailed {
		t.Errorf("done %v, error %v, states %v after it failed", done, err, states(failed))
	}
	w.end("Complete")
	for _, u := range w.all("Job") {
		if strings.HasPrefix(u.GetName(), "deleting") {
			w.delete(u)
		}
	}
	if _, done, err := w.beforeDelete(); done || err != nil {
		t.Errorf("done %v, error %v while it runs again", done, err)
	}
	w.end("Complete")
	if _, done, err := w.beforeDelete(); !done || err != nil {
		t.Errorf("done %v, error %v after it succeeded", done, err)
	}
}

func TestHooksBeforeDeletionAreNotSkippedBecauseTheClusterIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, phases)
	w.mustRun()
	w.cluster = away{w.site}
	if _, done, err := w.beforeDelete(); done || err == nil {
		t.Errorf("done %v, error %v, want it to be tried again", done, err)
	}
	w.cluster = w.site
	w.spec["size"] = "many"
	result, done, err := w.beforeDelete()
	if !done || err != nil || len(result.Events) != 1 || !result.Events[0].Warning {
		t.Errorf("done %v, error %v, events %v, want a warning and no hooks of a resource that cannot be evaluated", done, err, result.Events)
	}
}

// away is a cluster that answers no read.
type away struct{ cluster.Cluster }

func (away) GetCached(context.Context, cluster.Ref) (*unstructured.Unstructured, error) {
	return nil, context.DeadlineExceeded
}
