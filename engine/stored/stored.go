package stored

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
)

const (
	// pageSize is how many resources are in memory at once. Each has at most 1.5 MiB.
	pageSize = 100
	// maxBeginnings is how often a list begins anew that takes so long that the API server has forgotten it.
	maxBeginnings = 3
)

// A Checker checks definitions. Its zero value is ready for use, by several goroutines.
type Checker struct {
	mu sync.Mutex
	// found are the resources that were found last, by the names of definitions: they are looked at first, so that what is refused
	// again and again costs one request.
	found map[string]resource
}

// resource is one of some version.
type resource struct {
	version string
	name    types.NamespacedName
}

// Resources reads resources of a kind, as the API server has them.
type Resources interface {
	Get(ctx context.Context, name string, options metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error)
	List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// Access is how the resources of a kind are read.
type Access struct {
	// In returns what reads those of a namespace, or of all if there is none.
	In func(of schema.GroupVersionResource, namespace string) Resources
	// Namespaces are those whose resources are read if nobody may read those of all; nil has only all read.
	Namespaces []string
}

// Check errors with a LossError if resources that exist would lose fields under the next definition, or are refused by it and not by the
// present one, unless an administrator has accepted that. It errors otherwise only if the API server does not answer.
func (c *Checker) Check(ctx context.Context, access Access, present, next *apiextensionsv1.CustomResourceDefinition) error {
	narrowed := crd.NarrowedVersions(present, next)
	accept := ""
	if len(narrowed) > 0 {
		accept = crd.LossDigest(next)
	}
	if len(narrowed) == 0 || present.Annotations[crd.AcceptedLossAnnotation] == accept {
		c.remember(present.Name, resource{})
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, checkLimit, fmt.Errorf("they were not all looked at within %s", checkLimit))
	defer cancel()
	for _, n := range narrowed {
		v := &version{checker: c, access: access, present: present, name: n.Version}
		wrong, err := v.check(limited, next)
		if wrong == nil && err != nil {
			if ctx.Err() != nil || isAway(err) {
				return err
			}
			if !slices.Contains(present.Status.StoredVersions, n.Version) {
				continue // what is stored is safe, and whoever would convert may be about to begin
			}
			wrong = &LossError{Why: fmt.Sprintf("%v (%s)", err, n.Why)}
		}
		if wrong != nil {
			wrong.Definition, wrong.Version, wrong.Accept = present.Name, n.Version, accept
			return wrong
		}
	}
	c.remember(present.Name, resource{})
	return nil
}

// isAway reports whether an API server does not answer now. One that fails may fail because of a webhook, for ever.
func isAway(err error) bool {
	op, network := &net.OpError{}, net.Error(nil)
	return errors.As(err, &op) || errors.As(err, &network) && network.Timeout() || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

// remember notes which resource was found last, if any.
func (c *Checker) remember(definition string, is resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil {
		c.found = map[string]resource{}
	}
	c.found[definition] = is
	if is == (resource{}) {
		delete(c.found, definition)
	}
}

// version checks the resources of one version of a definition.
type version struct {
	checker *Checker
	access  Access
	present *apiextensionsv1.CustomResourceDefinition
	name    string

	before, after *conform.Reader
}

// check returns what is wrong with the first resource, or nil. It errors if they cannot be read.
func (v *version) check(ctx context.Context, next *apiextensionsv1.CustomResourceDefinition) (wrong *LossError, err error) {
	asked, err := readIn(v.present, v.name)
	if err != nil {
		return nil, err
	}
	if v.after, err = conform.NewReader(next, v.name); err != nil {
		return nil, err
	}
	if v.before, err = conform.NewReader(v.present, v.name); err != nil {
		v.before = nil // one without a schema refuses nothing
	}
	of := schema.GroupVersionResource{Group: v.present.Spec.Group, Version: asked, Resource: v.present.Spec.Names.Plural}
	if wrong := v.last(ctx, of); wrong != nil {
		return wrong, nil
	}
	wrong, err = v.pages(ctx, v.access.In(of, metav1.NamespaceAll))
	if apierrors.IsForbidden(err) {
		for _, namespace := range v.access.Namespaces {
			if wrong, err = v.pages(ctx, v.access.In(of, namespace)); wrong != nil || err != nil {
				break
			}
		}
	}
	if err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	if wrong != nil {
		v.checker.remember(v.present.Name, resource{v.name, wrong.Resource})
	}
	return wrong, err
}

// readIn returns the version in which the resources of a version can be read: what is stored in one that is not served may
// be read in another one as it is, if nobody converts.
func readIn(d *apiextensionsv1.CustomResourceDefinition, name string) (string, error) {
	served := func(name string) bool {
		return slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served && v.Name == name })
	}
	if served(name) {
		return name, nil
	}
	converts := d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	if storage := crd.StorageVersion(d); !converts && served(storage) {
		return storage, nil
	}
	return "", fmt.Errorf("resources may be stored in version %s, which is not served; run operetta crd migrate %s first", name, d.Name)
}

// last looks at the resource that was found last.
func (v *version) last(ctx context.Context, of schema.GroupVersionResource) *LossError {
	v.checker.mu.Lock()
	is := v.checker.found[v.present.Name]
	v.checker.mu.Unlock()
	if is.version != v.name {
		return nil
	}
	u, err := v.access.In(of, is.name.Namespace).Get(ctx, is.name.Name, metav1.GetOptions{})
	if err != nil {
		return nil // the list says why
	}
	return v.judge(u)
}

// pages looks at the resources in pages, until one is wrong.
func (v *version) pages(ctx context.Context, client Resources) (*LossError, error) {
	from := metav1.ListOptions{Limit: pageSize}
	for beginnings := 1; ; {
		list, err := client.List(ctx, from)
		if apierrors.IsResourceExpired(err) && beginnings < maxBeginnings {
			beginnings++
			from.Continue = "" // those that were right may have changed
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if wrong := v.judge(&list.Items[i]); wrong != nil {
				return wrong, nil
			}
		}
		if from.Continue = list.GetContinue(); from.Continue == "" {
			return nil, nil
		}
	}
}

// judge returns what would become of a resource, or nil if nothing would.
func (v *version) judge(u *unstructured.Unstructured) *LossError {
	object := map[string]any{}
	for name, value := range u.Object {
		if name != "status" { // the operator writes it anew
			object[name] = value
		}
	}
	object["apiVersion"] = schema.GroupVersion{Group: v.present.Spec.Group, Version: v.name}.String()
	out := &LossError{Kind: u.GetKind(), Resource: types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, UID: u.GetUID()}
	dropped, refused := v.after.Read(object)
	if len(dropped) > 0 {
		out.Field, out.Why = slices.Min(dropped), "the field would be dropped"
		return out
	}
	if len(refused) == 0 {
		return nil
	}
	var known field.ErrorList
	if v.before != nil {
		_, known = v.before.Read(object)
	}
	for _, e := range refused {
		if !slices.ContainsFunc(known, func(k *field.Error) bool { return k.Field == e.Field }) {
			out.Field, out.Why = e.Field, describe(e)
			return out
		}
	}
	return nil
}

// describe says what is wrong with a value without the value: it may be a password.
func describe(e *field.Error) string {
	if e.Detail == "" {
		return "the value would be refused: " + e.Type.String()
	}
	return "the value would be refused: " + e.Type.String() + ": " + e.Detail
}
