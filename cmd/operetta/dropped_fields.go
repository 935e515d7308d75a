package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/object"
)

const (
	// droppedPage is how many resources are read at once. Each has at most 1.5 MiB, and somebody may have made many of those.
	droppedPage = 25
	// droppedShown is how many of the fields that a resource would lose are named.
	droppedShown = 3
)

// A fieldCheck looks whether resources would lose fields.
type fieldCheck struct {
	config     *rest.Config
	namespaces object.Namespaces
	log        logr.Logger
}

// check errors, as the API server does about an invalid definition, if resources have fields that the next definition does
// not have any more: the API server would drop them at the next write, whoever writes. An administrator may have accepted that by an
// annotation. No request is sent if the next definition has all fields of the present one. It errors otherwise if the API server does not answer.
func (c fieldCheck) check(ctx context.Context, present, next *apiextensionsv1.CustomResourceDefinition) error {
	digest := crd.DropsDigest(present, next)
	if present.Annotations[crd.DropsAnnotation] == digest || crd.IsNewer(present, next) { // that of a newer engine stays
		return nil
	}
	var problems field.ErrorList
	for i, v := range next.Spec.Versions {
		found, err := c.version(ctx, present, next, v.Name)
		if err != nil {
			return fmt.Errorf("looking for resources that lose fields: %w", err)
		}
		if found == nil {
			continue
		}
		at := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		problems = append(problems, field.Forbidden(at, fmt.Sprintf(
			"%s; take the fields out of the resources, or accept that they are lost: kubectl annotate crd %s --overwrite %s=%s", found, next.Name, crd.DropsAnnotation, digest)))
	}
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}, next.Name, problems)
}

// droppedFields are those that a resource would lose.
type droppedFields struct {
	kind     string
	resource types.NamespacedName
	fields   []string
}

// String names the resource with its fields, and never a value.
func (d *droppedFields) String() string {
	name := strings.TrimPrefix(d.resource.String(), string(types.Separator)) // there may be no namespace
	fields := strings.Join(d.fields[:min(len(d.fields), droppedShown)], ", ")
	if more := len(d.fields) - droppedShown; more > 0 {
		fields += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s %s has %s, which would be dropped; others may have such fields, too", d.kind, name, fields)
}

// version looks at the resources as they are in one version that objects are stored in. What is stored in no version loses nothing by it,
// and a version that is not served cannot be read.
func (c fieldCheck) version(ctx context.Context, present, next *apiextensionsv1.CustomResourceDefinition, name string) (*droppedFields, error) {
	served := slices.ContainsFunc(present.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served && v.Name == name })
	if !served || !slices.Contains(present.Status.StoredVersions, name) {
		return nil, nil
	}
	before, err := conform.NewFields(present, name)
	if err != nil {
		return nil, nil //nolint:nilerr // a definition without a schema was not made from a package
	}
	after, err := conform.NewFields(next, name)
	if err != nil || before.Within(after) {
		return nil, err
	}
	found, err := c.find(ctx, present, name, after)
	converted := len(present.Status.StoredVersions) > 1 && present.Spec.Conversion != nil && present.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	if err != nil && found == nil && ctx.Err() == nil && (converted || !unreachable(err)) {
		// The webhook that converts may be that of a process which begins only with this definition. A process that may not list
		// the resources serves none of them.
		c.log.Info("it is not known whether resources lose fields by a new definition, because they cannot be listed", "definition", next.Name, "version", name, "error", err.Error())
		return nil, nil
	}
	if found != nil {
		return found, nil
	}
	return nil, err
}

// find returns the first resource with fields that an API server would drop, or nil. It errors if resources cannot be listed, and looks at those
// of the other namespaces nevertheless.
func (c fieldCheck) find(ctx context.Context, present *apiextensionsv1.CustomResourceDefinition, version string, after conform.Fields) (*droppedFields, error) {
	client, err := c.client(present)
	if err != nil {
		return nil, err
	}
	of := client.Resource(schema.GroupVersionResource{Group: present.Spec.Group, Version: version, Resource: present.Spec.Names.Plural})
	namespaces := c.namespaces.Lists()
	if present.Spec.Scope == apiextensionsv1.ClusterScoped {
		namespaces = object.Namespaces(nil).Lists()
	}
	var wrong []error
	for _, ns := range namespaces {
		found, err := firstDropped(ctx, of.Namespace(ns), after)
		if found != nil {
			return found, nil
		}
		wrong = append(wrong, err)
	}
	return nil, errors.Join(wrong...)
}

// firstDropped returns the first of some resources with fields that an API server would drop, or nil. It reads a page when it has looked at
// the one before, while a pager of client-go reads one ahead: that would be a request for nothing, and twice the memory.
func firstDropped(ctx context.Context, of dynamic.ResourceInterface, after conform.Fields) (*droppedFields, error) {
	options := metav1.ListOptions{Limit: droppedPage}
	for {
		page, err := of.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if found := dropped(&page.Items[i], after); found != nil {
				return found, nil
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil, nil
		}
	}
}

// dropped returns the fields of a resource that an API server would drop, or nil if there are none.
func dropped(u *unstructured.Unstructured, after conform.Fields) *droppedFields {
	fields := after.Dropped(u.Object)
	if len(fields) == 0 {
		return nil
	}
	return &droppedFields{u.GetKind(), types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, fields}
}

// client returns one that reads resources as whoever serves them.
func (c fieldCheck) client(present *apiextensionsv1.CustomResourceDefinition) (*dynamic.DynamicClient, error) {
	var account object.Account
	if text := present.Annotations[crd.AccountAnnotation]; text != "" {
		var err error
		if account, err = object.ParseAccount(text); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", present.Name, crd.AccountAnnotation, err)
		}
	}
	config, err := controller.Impersonating(c.config, account)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", present.Name, err)
	}
	return dynamic.NewForConfig(config)
}
