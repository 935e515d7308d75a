package controller

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/patch"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The kinds that a cluster serves in these tests.
var (
	thingKind  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	globalKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Global"}
)

func TestAPatchIsToldWhatItCannotBeAbout(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.com", Version: "v1"}, {Group: "apps", Version: "v1"}, {Version: "v1"}})
	mapper.Add(thingKind, meta.RESTScopeNamespace)
	mapper.Add(globalKind, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	u := &orphanPatchStatus{mapper: mapper, packaged: func(_ context.Context, kind schema.GroupKind) (bool, error) {
		return kind.Group == "example.com", nil
	}}
	for _, row := range []struct {
		reason string
		kind   schema.GroupKind
		want   patch.Reason
		says   string
	}{
		{"its lifecycle says the rest", thingKind.GroupKind(), "", ""},
		{
			"a kind that is mistyped", schema.GroupKind{Group: "example.com", Kind: "Thingy"},
			patch.NoSuchKind, "the cluster does not serve Thingy.example.com",
		},
		{
			"a group that is mistyped", schema.GroupKind{Group: "example.org", Kind: "Thing"},
			patch.NoSuchKind, "the cluster does not serve Thing.example.org",
		},
		{
			"an object instead of its resource", schema.GroupKind{Group: "apps", Kind: "Deployment"},
			patch.NoSuchKind, "Deployment.apps is not the kind of a package; a Patch is about a custom resource that a package serves",
		},
		{
			"nothing that a package has to do with", schema.GroupKind{Kind: "Node"},
			patch.NoSuchKind, "Node is not the kind of a package; a Patch is about a custom resource that a package serves",
		},
		{
			"no namespace is its own", globalKind.GroupKind(),
			patch.TargetClusterScoped, "Global.example.com is cluster-scoped, and a Patch is about a resource of its own namespace",
		},
	} {
		got, says, err := u.judge(t.Context(), row.kind)
		if err != nil || got != row.want || says != row.says {
			t.Errorf("%s: %q, %q, error %v; want %q, %q", row.reason, got, says, err, row.want, row.says)
		}
	}
}

func TestAPatchReconcilesWhatItIsAbout(t *testing.T) {
	t.Parallel()
	u := watch.NewObject(patch.Kind)
	u.SetNamespace("default")
	for _, row := range []struct {
		reason string
		kind   schema.GroupVersionKind
		scope  cluster.Scope
		target map[string]any
		want   []ctrl.Request
	}{
		{"it is named", thingKind, cluster.Namespaced, map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "name": "shop"}, []ctrl.Request{request("shop")}},
		{"any version will do", thingKind, cluster.Namespaced, map[string]any{"apiVersion": "example.com/v9", "kind": "Thing", "name": "shop"}, []ctrl.Request{request("shop")}},
		{"another kind", thingKind, cluster.Namespaced, map[string]any{"apiVersion": "example.com/v1", "kind": "Other", "name": "shop"}, nil},
		{
			"the same resource would be reconciled under two names at once", globalKind, cluster.ClusterScoped,
			map[string]any{"apiVersion": "example.com/v1", "kind": "Global", "name": "shop"}, nil,
		},
	} {
		u.Object["spec"] = map[string]any{"target": row.target}
		about := patchTargets{kind: row.kind, scope: func(context.Context, schema.GroupVersionKind) (cluster.Scope, error) { return row.scope, nil }}
		if diff := cmp.Diff(row.want, about.requests(t.Context(), u)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, diff)
		}
	}
}
