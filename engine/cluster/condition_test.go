package cluster

import (
	"context"
	"fmt"
	"testing"

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
		return apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "all", nil)
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
	wanted := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "default"}}}
	}
	c := &conditional{exists: true}
	if _, err := (&Live{Client: c, Direct: c}).Apply(t.Context(), wanted()); !apierrors.IsAlreadyExists(err) || len(c.versions) != 1 {
		t.Errorf("after the conditions %q, the error is %v", c.versions, err)
	}
	c = &conditional{}
	object := wanted()
	out, err := (&Live{Client: c, Direct: c}).Apply(t.Context(), object)
	if err != nil || out.GetUID() != "new" || len(c.versions) != 2 || c.versions[1] != "" {
		t.Errorf("after the conditions %q, it is %v, error %v", c.versions, out, err)
	}
	if object.GetResourceVersion() != "" || object.GetUID() != "" {
		t.Errorf("what was to be applied has changed to %v", object.Object)
	}
}
