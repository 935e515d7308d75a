package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/status"
)

// alarmed is a package that raises an alarm when something could not be applied.
const alarmed = `
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
components: front: {dependsOn: web: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "front"}}
components: db: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "db", data: size: "\(cr.spec.size)"}
hooks: afterDeployUnsuccessful: alarm: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "alarm"}
hooks: afterDeploy: done: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "done"}
`

// refuse makes the cluster refuse an object as admission does.
func (b *bench) refuse(kind, name string, err error) {
	b.memory.SetAdmission(func(_, after *unstructured.Unstructured) error {
		if after != nil && after.GetKind() == kind && after.GetName() == name {
			return err
		}
		return nil
	})
}

// expectConditions compares phase, Ready, Reconciling and Stalled.
func (b *bench) expectConditions(reason string, want ...string) {
	b.t.Helper()
	phase, _ := b.status()["phase"].(string)
	got := []string{phase}
	for _, kind := range []string{status.ConditionReady, status.ConditionReconciling, status.ConditionStalled} {
		text, _ := b.condition(kind)
		got = append(got, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("%s: phase, Ready, Reconciling and Stalled (-want +got):\n%s", reason, diff)
	}
}

// errRefused is what a quota says.
var errRefused = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New("exceeded quota"))

// pass lets time pass, and the resource be looked at in the end, errors or not: once
// to come to the end, and once more, as progress is held back for a moment.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	_, _ = b.step()
	b.now = b.now.Add(d)
	for range 3 {
		_, _ = b.step()
		b.now = b.now.Add(4 * time.Second)
	}
}

// remove deletes an object as somebody else.
func (b *bench) remove(kind, name string) {
	b.t.Helper()
	u := b.find(kind, name)
	if err := b.memory.Delete(b.t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
		b.t.Fatal(err)
	}
}

// stateOf returns "State Reason" of a component in the status.
func (b *bench) stateOf(component string) string {
	list, _ := b.status()["components"].([]any)
	for _, c := range list {
		if m, _ := c.(map[string]any); m["name"] == component {
			return m["state"].(string) + " " + m["reason"].(string)
		}
	}
	return ""
}

// hooksRun returns the names of the hooks that have run.
func (b *bench) hooksRun() []string {
	var out []string
	list, _ := b.status()["hooks"].([]any)
	for _, h := range list {
		m, _ := h.(map[string]any)
		out = append(out, m["name"].(string))
	}
	return out
}

// warnings returns the reasons of the warnings that were recorded.
func (b *bench) warnings() []string {
	var out []string
	for _, e := range b.events {
		if e.Warning {
			out = append(out, e.Reason)
		}
	}
	return out
}

func TestARefusalThatPassesIsNoFailure(t *testing.T) {
	t.Parallel()
	group := schema.GroupResource{Resource: "configmaps"}
	refusals := map[string]struct {
		reason string
		err    error
	}{
		"no permission": {"it may be granted at any moment", errRefused},
		"a conflict":    {"somebody else wrote at the same time", apierrors.NewConflict(group, "web", errors.New("the object has been modified"))},
		"a timeout":     {"the API server is busy", apierrors.NewTimeoutError("etcd", 1)},
		"a dead webhook": {"it is not up yet",
			apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))},
	}
	for name, row := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, alarmed)
			b.refuse("ConfigMap", "web", row.err)
			for range 6 {
				if _, err := b.step(); err == nil {
					t.Fatalf("%s: it is not tried again", row.reason)
				}
			}
			b.expectConditions(row.reason, "Waiting", "False ApplyFailed", "True Waiting", "False NotStalled")
			for component, want := range map[string]string{"web": "Retrying ApplyFailed", "front": "Waiting WaitingForDependency", "db": "Verified Verified"} {
				if got := b.stateOf(component); got != want {
					t.Errorf("%s: %s is %s, want %s", row.reason, component, got, want)
				}
			}
			if got := b.hooksRun(); got != nil {
				t.Errorf("%s: %v ran although the deploy phase is still on its way", row.reason, got)
			}
			if got := b.warnings(); got != nil {
				t.Errorf("%s: warnings %v", row.reason, got)
			}
			b.memory.SetAdmission(nil)
			b.rest()
			b.expectConditions("it recovers", "Ready", "True Ready", "False Ready", "False NotStalled")
			if diff := cmp.Diff([]string{"hooks.afterDeploy.done"}, b.hooksRun()); diff != "" {
				t.Errorf("%s: hooks (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestAnObjectThatIsWrongIsAFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t, alarmed)
	b.refuse("ConfigMap", "web", apierrors.NewBadRequest("no such field"))
	b.rest()
	b.expectConditions("the same object would be refused again", "Failed", "False ObjectRejected", "False Failed", "True ObjectRejected")
	if diff := cmp.Diff([]string{"hooks.afterDeployUnsuccessful.alarm"}, b.hooksRun()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

// unread is a cluster that answers no read.
type unread struct{ *memory.Cluster }

// GetCached implements cluster.Cluster.
func (unread) GetCached(context.Context, cluster.Ref) (*unstructured.Unstructured, error) {
	return nil, context.DeadlineExceeded
}

// blind makes the cluster answer no read, for one step.
func (b *bench) blind() {
	b.t.Helper()
	b.reconciler.Cluster = unread{b.memory}
	defer func() { b.reconciler.Cluster = b.memory }()
	if _, err := b.step(); err == nil {
		b.t.Fatal("a cluster that answers no read is no error")
	}
}

func TestAClusterThatCannotBeReadIsNoFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t, alarmed)
	b.rest()
	was := b.status()["components"]
	b.blind()
	b.expectConditions("nothing is known to be wrong", "Waiting", "False ApplyFailed", "True Waiting", "False NotStalled")
	if diff := cmp.Diff(was, b.status()["components"]); diff != "" {
		t.Errorf("what was said of components is lost (-want +got):\n%s", diff)
	}
	b.rest()
	b.expectConditions("it answers again", "Ready", "True Ready", "False Ready", "False NotStalled")
	if got := b.warnings(); got != nil {
		t.Errorf("warnings %v", got)
	}
}

func TestWhatHasFailedStaysFailedWhileTheClusterCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, alarmed)
	b.put(settings(shopKey.Namespace, "web", nil))
	b.rest()
	b.expectConditions("it is somebody else's", "Failed", "False OwnedByAnother", "False Failed", "True OwnedByAnother")
	b.blind()
	b.expectConditions("nobody could look", "Failed", "False ApplyFailed", "False Failed", "True OwnedByAnother")
	b.rest()
	if got := b.warnings(); len(got) != 1 {
		t.Errorf("warnings %v, want the one of the failure", got)
	}
	act(t, b.memory, map[string]any{"size": int64(2)})
	b.blind()
	b.expectConditions("nothing is known of another spec", "Waiting", "False ApplyFailed", "True Waiting", "False NotStalled")
}
