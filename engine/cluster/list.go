package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	return List(ctx, l.Direct, s)
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
