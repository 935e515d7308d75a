package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestKindThatWentSinceItWasLookedUpIsNotServed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		answer error
		want   bool
	}{
		"no such path":      {"its definition is gone", apierrors.NewGenericServerResponse(http.StatusNotFound, http.MethodPatch, schema.GroupResource{}, "", "404 page not found", 0, true), true},
		"no such namespace": {"the kind is known", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "default"), false},
		"bad gateway":       {"the path is not the trouble", apierrors.NewGenericServerResponse(http.StatusBadGateway, http.MethodPatch, schema.GroupResource{}, "", "oops", 0, true), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					return row.answer
				},
			}).Build()
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"})
			u.SetName("child")
			_, err := (&cluster.Live{Client: c, Direct: c}).Apply(t.Context(), u)
			if err == nil || cluster.IsKindNotServed(err) != row.want {
				t.Errorf("%s: got %v", row.reason, err)
			}
		})
	}
}

func TestAListOfAKindThatIsNotServedSaysSo(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	for name, row := range map[string]struct {
		reason string
		answer error
		want   bool
	}{
		"no such kind":  {"discovery does not have it", &apimeta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}, true},
		"no such path":  {"its definition is gone", apierrors.NewGenericServerResponse(http.StatusNotFound, http.MethodGet, schema.GroupResource{}, "", "404 page not found", 0, true), true},
		"not permitted": {"the kind is known", apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: "things"}, "", errors.New("no")), false},
	} {
		for _, onlyMetadata := range []bool{false, true} {
			c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					return row.answer
				},
			}).Build()
			_, err := (&cluster.Live{Client: c, Direct: c}).ListLive(t.Context(), cluster.Selection{Kind: kind, OnlyMetadata: onlyMetadata})
			if err == nil || cluster.IsKindNotServed(err) != row.want {
				t.Errorf("%s (only metadata: %t): %s: got %v", name, onlyMetadata, row.reason, err)
			}
		}
	}
}
