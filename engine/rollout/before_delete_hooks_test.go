package rollout_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// blindfolded is a cluster whose namespaces may not be read.
type blindfolded struct{ cluster.Cluster }

// GetLive implements cluster.Cluster.
func (b blindfolded) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Kind == "Namespace" {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, ref.Name, nil)
	}
	return b.Cluster.GetLive(ctx, ref)
}

const backup = `
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
hooks: beforeDelete: backup: objects: job: _job & {metadata: name: "backup"}
`

func TestG3HooksBeforeDeletionDoNotHoldANamespaceThatIsDeleted(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason string
		body   string
		act    func(w *world)
		// running says that the hook runs already.
		running bool
	}{
		"its objects cannot be created": {
			reason: "they never can be again", body: backup,
			act: func(w *world) { w.site.Terminate() },
		},
		"and the operator may not read namespaces": {
			reason: "the refusal says so", body: backup,
			act: func(w *world) {
				w.site.Terminate()
				w.cluster = blindfolded{w.site}
			},
		},
		"what it reads is gone already": {
			reason: "the namespace takes the Secret and the resource in any order",
			body: backup + `
inputs: token: {apiVersion: "v1", kind: "Secret", name: "token"}
hooks: beforeDelete: backup: objects: job: spec: completions: inputs.token.object.data.n
`,
			act: func(w *world) { w.site.Terminate() },
		},
		"it runs, and its pods cannot": {
			reason: "it will not end", body: backup, running: true,
			act: func(w *world) { w.site.Terminate() },
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, row.body)
			w.mustRun()
			if row.running {
				if _, done, err := w.beforeDelete(); done || err != nil {
					t.Fatalf("done %v, error %v", done, err)
				}
			}
			row.act(w)
			result, done, err := w.beforeDelete()
			if !done || err != nil {
				t.Fatalf("%s: done %v, error %v, states %v", row.reason, done, err, states(result))
			}
			if len(result.Events) != 1 || result.Events[0].Reason != "HooksSkipped" || !strings.Contains(result.Events[0].Message, "namespace "+w.owner.Namespace+" is being deleted") {
				t.Errorf("%s: events %v, want one that says why", row.reason, result.Events)
			}
			if left := w.mustTeardown().Inventory; left.Len() != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	t.Run("another refusal is no reason", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, backup)
		w.mustRun()
		w.site.Refuse(func(before, _ *unstructured.Unstructured) error {
			if before == nil {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "backup", nil)
			}
			return nil
		})
		if _, done, err := w.beforeDelete(); done || err == nil {
			t.Errorf("done %v, error %v: a backup must not be left out because of a quota", done, err)
		}
	})
}

// noInputs cannot be read.
type noInputs struct{ cluster.Cluster }

// ListCached implements cluster.Cluster.
func (noInputs) ListCached(context.Context, cluster.Selection) ([]*unstructured.Unstructured, error) {
	return nil, context.DeadlineExceeded
}

func TestWhatKeepsHooksBeforeDeletionFromRunningIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, backup+`inputs: token: {apiVersion: "v1", kind: "Secret", name: "token"}`)
	w.mustRun()
	for name, e := range map[string]*rollout.Engine{
		"an object cannot be read": {Package: w.program, Cluster: away{w.site}},
		"an input cannot be read":  {Package: w.program, Cluster: noInputs{w.site}},
	} {
		result, done, err := e.BeforeDelete(context.Background(), rollout.Input{Owner: w.owner, CR: w.cr(), Inventory: w.inventory})
		if done || err == nil {
			t.Errorf("%s: done %v, error %v", name, done, err)
		}
		if c := result.Completion; !c.Deleting || c.Ready() || c.Fault.Reason != status.ReasonApplyFailed || !strings.Contains(c.Fault.Message, "deadline") {
			t.Errorf("%s: it says %+v, want what is wrong", name, c)
		}
		if !result.Inventory.Equal(w.inventory) {
			t.Errorf("%s: the inventory is %v", name, result.Inventory)
		}
	}
}

// A hook whose end is forgotten runs twice.
func TestWhenTheDeletionBeginsTheStatesOfHooksAreKept(t *testing.T) {
	t.Parallel()
	before := rollout.HookStates{"hooks.afterDeploy.migrate": {State: status.Verified, Digest: "d"}}
	for name, got := range map[string]rollout.HookStates{"begun": before.WithDeletionBegun(), "unknown": before.WithHooksUnknown()} {
		if diff := cmp.Diff(before["hooks.afterDeploy.migrate"], got["hooks.afterDeploy.migrate"]); diff != "" || len(got) != 2 {
			t.Errorf("%s: the states are %v (-want +got):\n%s", name, got, diff)
		}
		if got.DeletionBegun() != (name == "begun") {
			t.Errorf("%s: the deletion has begun: %v", name, got.DeletionBegun())
		}
	}
	one := ownership.Inventory{{Component: "a", Objects: []ownership.Entry{{Object: "o", APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}}}
	if why := before.WithHooksUnknown().BeforeDeletion(one); why == "" {
		t.Error("one object is deleted without its hooks when nobody knows whether there are any")
	}
	if len(before) != 1 {
		t.Errorf("the states before were changed, and others still have them: %v", before)
	}
}
