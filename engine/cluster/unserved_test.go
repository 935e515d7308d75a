package cluster_test

import (
	"context"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
