package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListCached implements Cluster.
func (l *Live) ListCached(ctx context.Context, s Selection) ([]*unstructured.Unstructured, error) {
	return List(ctx, l.Client, s)
}

// ListLive implements Cluster.
func (l *Live) ListLive(ctx context.Context, s Selection) ([]*unstructured.Unstructured, error) {
	list := func() ([]*unstructured.Unstructured, error) { return List(ctx, l.Direct, s) }
	if s.OnlyMetadata {
		list = func() ([]*unstructured.Unstructured, error) { return listMetadata(ctx, l.Direct, s) }
	}
	found, err := list()
	if unserved(err) {
		return nil, &KindNotServedError{Kind: s.Kind}
	}
	return found, err
}

// metadataPage is how many objects one request for metadata returns.
const metadataPage = 500

// listMetadata returns the metadata of the objects of a selection, sorted by name.
func listMetadata(ctx context.Context, from client.Reader, s Selection) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	list := &metav1.PartialObjectMetadataList{}
	for {
		list.SetGroupVersionKind(s.Kind.GroupVersion().WithKind(s.Kind.Kind + "List"))
		err := from.List(ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels(s.Labels), client.Limit(metadataPage), client.Continue(list.Continue))
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", s.Kind.Kind, err)
		}
		for i := range list.Items {
			u, err := metadataOnly(&list.Items[i], s.Kind)
			if err != nil {
				return nil, err
			}
			out = append(out, u)
		}
		if list.Continue == "" {
			slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
			return out, nil
		}
	}
}

// List returns the objects of a selection that a reader has, sorted by name.
func List(ctx context.Context, from client.Reader, s Selection, options ...client.ListOption) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(s.Kind.GroupVersion().WithKind(s.Kind.Kind + "List"))
	options = append(options, client.InNamespace(s.Namespace), client.MatchingLabels(s.Labels), client.Limit(s.Limit))
	if s.Name != "" {
		// A raw option reaches only the API server: a cache would need an index.
		options = append(options, &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", s.Name).String()}})
	}
	if err := from.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.Kind.Kind, err)
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, nil
}

// listPage is how many objects one request of ListPages returns.
const listPage = 500

// ListPages calls a function with the objects of a selection that have a label with any value, or all for "",
// page by page as the API server has them now. A list that takes so long that the API server has forgotten it
// begins again, once: the function may see objects twice.
func (l *Live) ListPages(ctx context.Context, s Selection, label string, each func([]*unstructured.Unstructured) error) error {
	list, again := &unstructured.UnstructuredList{}, true
	for {
		list.SetGroupVersionKind(s.Kind.GroupVersion().WithKind(s.Kind.Kind + "List"))
		options := []client.ListOption{client.InNamespace(s.Namespace), client.MatchingLabels(s.Labels), client.Limit(listPage), client.Continue(list.GetContinue())}
		if label != "" {
			options = append(options, client.HasLabels{label})
		}
		if s.Name != "" {
			options = append(options, client.MatchingFields{"metadata.name": s.Name})
		}
		err := l.Direct.List(ctx, list, options...)
		switch {
		case apierrors.IsResourceExpired(err) && again:
			list, again = &unstructured.UnstructuredList{}, false
			continue
		case unserved(err):
			return &KindNotServedError{Kind: s.Kind}
		case err != nil:
			return fmt.Errorf("listing %s: %w", s.Kind.Kind, err)
		}
		page := make([]*unstructured.Unstructured, len(list.Items))
		for i := range list.Items {
			page[i] = list.Items[i].DeepCopy()
		}
		if err := each(page); err != nil {
			return err
		}
		if list.GetContinue() == "" {
			return nil
		}
	}
}
