package main

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// digestAnnotation of an object is a digest of what was applied. It tells that a field is no longer
// rendered, which a comparison with the live object cannot.
const digestAnnotation = "example.com/applied"

// fieldManager is whom the API server notes as the manager of what is applied.
const fieldManager = "handwritten"

// configuration is an apply configuration of some type.
type configuration[T any] interface {
	runtime.ApplyConfiguration
	WithAnnotations(map[string]string) T
}

// apply makes an object what it should be. It sends nothing if the object in the cache is already so;
// live is an empty object of the same type and name.
func apply[T configuration[T]](ctx context.Context, c client.Client, owner metav1.Object, desired T, live client.Object) error {
	text, err := json.Marshal(desired)
	if err != nil {
		return err
	}
	sum := digest(json.RawMessage(text))
	err = c.Get(ctx, client.ObjectKeyFromObject(live), live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		if !metav1.IsControlledBy(live, owner) {
			return fmt.Errorf("%T %s belongs to somebody else", live, live.GetName())
		}
		same, err := inSync(text, live, sum)
		if err != nil || same {
			return err
		}
	}
	desired = desired.WithAnnotations(map[string]string{digestAnnotation: sum})
	return c.Apply(ctx, desired, client.FieldOwner(fieldManager), client.ForceOwnership)
}

// inSync reports whether a live object is as it was applied, and that is what should be applied now.
func inSync(desired []byte, live client.Object, sum string) (bool, error) {
	if live.GetAnnotations()[digestAnnotation] != sum {
		return false, nil
	}
	want := map[string]any{}
	if err := k8sjson.Unmarshal(desired, &want); err != nil {
		return false, err
	}
	// What comes from the cache has no type.
	delete(want, "apiVersion")
	delete(want, "kind")
	got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	return contains(got, want), err
}

// contains reports whether a value has everything that another one has.
func contains(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return len(want) == 0
		}
		for k, v := range want {
			if !contains(got[k], v) {
				return false
			}
		}
		return true
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return false
		}
		for i := range want {
			if !contains(got[i], want[i]) {
				return false
			}
		}
		return true
	}
	return got == want
}

// remove deletes an object that should not exist, if it is the owner's.
func remove(ctx context.Context, c client.Client, owner metav1.Object, live client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(live), live)
	if err != nil || !metav1.IsControlledBy(live, owner) {
		return client.IgnoreNotFound(err)
	}
	err = c.Delete(ctx, live, client.Preconditions{UID: new(live.GetUID())})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
