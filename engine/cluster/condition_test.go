package cluster

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conditional is a client of an API server that answers an apply with a condition by a conflict.
type conditional struct {
	client.Client
	// exists says that the object is there.
	exists bool
	// says is its answer to the condition.
	says error
	// versions are the conditions of the applies so far.
	versions []string
}

func (c *conditional) Scheme() *runtime.Scheme { return runtime.NewScheme() }

func (c *conditional) Apply(_ context.Context, applied runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	u, is := applied.(metav1.Object)
	if !is {
		return fmt.Errorf("there is no metadata in %T", applied)
	}
	c.versions = append(c.versions, u.GetResourceVersion())
	if u.GetResourceVersion() != "" {
		return c.says
	}
	u.SetUID("new")
	return nil
}

func (c *conditional) Get(_ context.Context, _ client.ObjectKey, u client.Object, _ ...client.GetOption) error {
	if !c.exists {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "x")
	}
	u.SetUID("theirs")
	return nil
}

// Not each conflict says that the object exists: a quota may be in conflict, and an API server of its own could refuse the
// condition. Such an object is created all the same.
func TestAConflictIsThatOfAnObjectOnlyIfItExists(t *testing.T) {
	t.Parallel()
	quota := apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "all", nil)
	for name, row := range map[string]struct {
		reason string
		exists bool
		says   error
		// versions are the conditions that are sent.
		versions []string
		want     func(error) bool
	}{
		"it exists":                      {"it is not written", true, quota, []string{"1"}, apierrors.IsAlreadyExists},
		"a quota is in conflict":         {"it is not about the object", false, quota, []string{"1", ""}, nil},
		"the condition is a bad request": {"an API server may know none", false, apierrors.NewBadRequest("no version"), []string{"1", ""}, nil},
		"and so it is of what exists":    {"nobody's object is written", true, apierrors.NewBadRequest("no version"), []string{"1"}, apierrors.IsAlreadyExists},
		"a policy forbids the object":    {"it would without the condition", false, apierrors.NewForbidden(schema.GroupResource{}, "x", nil), []string{"1"}, apierrors.IsForbidden},
		"the API server is too busy now": {"it is tried again later", false, apierrors.NewTooManyRequests("busy", 1), []string{"1"}, apierrors.IsTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "default"}}}
			c := &conditional{exists: row.exists, says: row.says}
			out, err := (&Live{Client: c, Direct: c}).Apply(t.Context(), object)
			if row.want == nil && (err != nil || out.GetUID() != "new") || row.want != nil && !row.want(err) {
				t.Errorf("%s: it is %v, error %v", row.reason, out, err)
			}
			if diff := cmp.Diff(row.versions, c.versions); diff != "" {
				t.Errorf("%s: conditions (-want +got):\n%s", row.reason, diff)
			}
			if object.GetResourceVersion() != "" || object.GetUID() != "" {
				t.Errorf("what was to be applied has changed to %v", object.Object)
			}
		})
	}
}
