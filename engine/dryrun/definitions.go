package dryrun

import (
	"errors"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/crd/conform"
)

// definitionKind is that of CustomResourceDefinitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// definitions validate the custom resources whose CustomResourceDefinitions exist. Other custom
// resources are not validated.
type definitions struct {
	mu      sync.Mutex
	servers map[schema.GroupVersionKind]*conform.Server
}

// learn starts to validate by a definition. A definition that an API server would reject never gets
// here.
func (d *definitions) learn(u *unstructured.Unstructured) {
	crd, err := definitionOf(u)
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range crd.Spec.Versions {
		if server, err := conform.NewServer(crd, v.Name); err == nil {
			d.servers[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = server
		}
	}
}

// prune removes the fields of a custom resource that its definition does not have, as an API server does for a controller.
func (d *definitions) prune(u *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if server := d.servers[u.GroupVersionKind()]; server != nil {
		server.Prune(u.Object)
	}
}

// refuse is a memory.Admission for definitions and for the resources that they define.
func (d *definitions) refuse(before, after *unstructured.Unstructured) error {
	if after == nil {
		return nil
	}
	if after.GroupVersionKind().GroupKind() == definitionKind {
		return refusedDefinition(after)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	server := d.servers[after.GroupVersionKind()]
	if server == nil {
		return nil
	}
	var old map[string]any
	if before != nil {
		old = before.Object
	}
	_, err := server.Admit(after.Object, old)
	return asInvalid(after, err)
}

// refusedDefinition returns the error of an API server about a definition, or nil.
func refusedDefinition(u *unstructured.Unstructured) error {
	crd, err := definitionOf(u)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return asInvalid(u, conform.Check(crd))
}

func definitionOf(u *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	out := &apiextensionsv1.CustomResourceDefinition{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, out, true)
}

// asInvalid returns the error with which an API server reports an invalid object, or nil.
func asInvalid(u *unstructured.Unstructured, err error) error {
	if err == nil {
		return nil
	}
	faults := field.ErrorList{}
	if all, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		for _, e := range all.Errors() {
			if fault, ok := errors.AsType[*field.Error](e); ok {
				faults = append(faults, fault)
			}
		}
	}
	if len(faults) == 0 {
		return apierrors.NewBadRequest(err.Error())
	}
	return apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), faults)
}
