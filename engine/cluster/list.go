package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListCached implements Cluster.
func (l *Live) ListCached(ctx context.Context, s Selection) ([]*unstructured.Unstructured, error) {
	return List(ctx, l.Client, s)
}

// ListLive implements Cluster.
func (l *Live) ListLive(ctx context.Context, s Selection) ([]*unstructured.Unstructured, error) {
	if s.OnlyMetadata {
		return listMetadata(ctx, l.Direct, s)
	}
	return List(ctx, l.Direct, s)
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
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i])
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", s.Kind.Kind, err)
			}
			u := &unstructured.Unstructured{Object: content}
			u.SetGroupVersionKind(s.Kind)
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
