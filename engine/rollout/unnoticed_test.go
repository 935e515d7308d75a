package rollout_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// What becomes of an object whose marks were removed is said as the inventory knows it: it was to be
// left behind, or nobody can prove any more whose it is.
func TestWhatWasStrippedIsLeftWithAWord(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ policy, reason string }{
		"to be left behind": {`policy: o: delete: "orphan"`, "Orphaned"},
		"to be deleted":     {``, "Kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `
components: base: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "base"}
components: extra: {
	when: cr.spec.on
	`+row.policy+`
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "extra", data: a: "b"}
}
`)
			w.mustRun()
			w.change("ConfigMap", "extra", func(u *unstructured.Unstructured) {
				u.SetLabels(nil)
				u.SetAnnotations(nil)
				u.SetOwnerReferences(nil)
			})
			w.spec["on"] = false
			var said []string
			for _, e := range w.mustRun().Events {
				said = append(said, e.Reason)
			}
			if !slices.Equal(said, []string{row.reason}) || w.object("ConfigMap", "extra") == nil {
				t.Errorf("events %q, want %s", said, row.reason)
			}
		})
	}
}

// gated has a component behind another one, whose size 9 is not healthy.
const gated = `
components: first: {
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "first", data: size: "\(cr.spec.size)"}
	verify: small: live.first.o.data.size != "9"
}
components: second: {
	dependsOn: first: {}
	requires: on: cr.spec.on
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "second"}
}
`

// What runs as it should behind a component that does not is no news, and counts as ready.
func TestWhatRunsBehindAClosedGateIsHealthy(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		spec map[string]any
		want bool
	}{
		"its dependency is not ready": {map[string]any{"size": int64(9)}, true},
		"a requirement is not met":    {map[string]any{"on": false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, gated)
			w.mustRun()
			w.spec = row.spec
			second := w.mustRun().Completion.Components[1]
			if second.State != status.Waiting || second.Healthy != row.want {
				t.Errorf("it is %s (%s), healthy is %t", second.State, second.Reason, second.Healthy)
			}
		})
	}
}

// The value of a Secret that the package renders is taken out of whatever is said later.
func TestRenderedSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: one: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "one", stringData: password: "correct-horse-battery"}`)
	redactor := redact.New()
	e := &rollout.Engine{Package: w.program, Cluster: w.cluster, Reach: w.program.Reach()}
	if _, err := e.Preview(t.Context(), rollout.Input{Owner: w.owner, CR: w.cr(), Redactor: redactor}); err != nil {
		t.Fatal(err)
	}
	if got := redactor.Text("it is correct-horse-battery"); strings.Contains(got, "horse") {
		t.Errorf("it says %q", got)
	}
}

// So is the value of one that somebody else has written into its place.
func TestSecretsOfTheResourceAreRedactedAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: one: {
	objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "one", data: password: "cGxhaW4="}
	policy: o: apply: "createOnly"
}`)
	w.mustRun()
	w.change("Secret", "one", func(u *unstructured.Unstructured) {
		u.Object["data"] = map[string]any{"password": "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"}
	})
	redactor := redact.New()
	e := &rollout.Engine{Package: w.program, Cluster: w.cluster, Reach: w.program.Reach()}
	if _, err := e.Preview(t.Context(), rollout.Input{Owner: w.owner, CR: w.cr(), Inventory: w.inventory, Redactor: redactor}); err != nil {
		t.Fatal(err)
	}
	if got := redactor.Text("it is correct-horse-battery"); strings.Contains(got, "horse") {
		t.Errorf("it says %q", got)
	}
}

// undefined is a cluster that has lost the definition of a kind since it was asked for it.
type undefined struct {
	cluster.Cluster

	kind string
}

// Apply implements cluster.Cluster.
func (u undefined) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if object.GetKind() == u.kind {
		return nil, &cluster.KindNotServedError{Kind: object.GroupVersionKind()}
	}
	return u.Cluster.Apply(ctx, object)
}

func TestAKindWhoseDefinitionGoesWhileItIsWrittenIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: one: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "one", stringData: a: "b"}
components: two: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "two"}
`)
	w.cluster = undefined{w.site, "Secret"}
	result := w.mustRun()
	expectStates(t, result, "one: Waiting KindNotServed", "two: Verified Verified")
	if got := message(result, "one"); !strings.HasPrefix(got, "object o: ") {
		t.Errorf("it says %q, want which object", got)
	}
	if result.RequeueAfter == 0 {
		t.Error("it is not looked at again, and no event tells of the definition")
	}
	w.cluster = w.site
	expectStates(t, w.mustRun(), "one: Verified Verified", "two: Verified Verified")
}

// unscoped is a cluster whose discovery fails for a kind.
type unscoped struct {
	cluster.Cluster

	kind string
}

// Scope implements cluster.Cluster.
func (u unscoped) Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	if kind.Kind == u.kind {
		return cluster.Namespaced, errors.New("discovery fails")
	}
	return u.Cluster.Scope(ctx, kind)
}

func TestAnObjectWhoseScopeIsNotKnownIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: one: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "one", stringData: a: "b"}
components: two: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "two"}
`)
	w.cluster = unscoped{w.site, "Secret"}
	result, err := w.run()
	if err == nil || !strings.Contains(err.Error(), "discovery fails") {
		t.Errorf("the error is %v", err)
	}
	if one := result.Completion.Components[0]; one.State != status.Retrying || !strings.Contains(one.Message, "object o: discovery fails") {
		t.Errorf("it is %s: %s", one.State, one.Message)
	}
	w.cluster = w.site
	w.mustRun()
	if !w.mustRun().Completion.Ready() {
		t.Error("it does not go on")
	}
}
