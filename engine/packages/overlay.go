package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/source"
)

// Overlays reads the Overlays of the cluster, and watches them.
type Overlays interface {
	// List returns all Overlays, and has Reconcile called for the Package when there are others.
	List(ctx context.Context, name string) ([]*unstructured.Unstructured, error)
	// Forget ends that.
	Forget(name string)
}

// unify sets the content of a Package: what its source has, with the Overlays of the cluster. That takes no
// registry, so that an Overlay holds also while there is an outage of it.
func (src sources) unify(ctx context.Context, p Package, s *state) *problem {
	all, wrong := src.listOverlays(ctx, p)
	if wrong != nil {
		s.content.snapshot, s.content.unified = nil, ""
		return wrong
	}
	version := s.content.plain.Digest() + overlaysVersion(p, all)
	if s.content.unified == version {
		return s.content.conflict.fresh()
	}
	snapshot, err := unified(p, s.content.plain, all)
	s.content.snapshot, s.content.unified, s.content.conflict = snapshot, version, nil
	if err != nil {
		s.content.conflict = unusable(err)
	}
	return s.content.conflict.fresh()
}

// listOverlays returns the Overlays of the cluster by name.
func (src sources) listOverlays(ctx context.Context, p Package) ([]*unstructured.Unstructured, *problem) {
	if src.overlays == nil {
		return nil, nil
	}
	all, err := src.overlays.List(ctx, p.Name)
	if err != nil {
		out := &problem{stage: reading, reason: ReasonSourceUnreadable, message: "overlays: " + err.Error(), err: err}
		if _, unreadable := errors.AsType[*cluster.KindUnreadableError](err); unreadable {
			out.err, out.again = nil, sourceAgain
		}
		return nil, out
	}
	return slices.SortedFunc(slices.Values(all), func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) }), nil
}

// overlaysVersion identifies the state of the Overlays, and for whom they hold. It does not read what they say.
func overlaysVersion(p Package, all []*unstructured.Unstructured) string {
	var out strings.Builder
	fmt.Fprintf(&out, " %v", p.object.GetLabels())
	for _, u := range all {
		fmt.Fprintf(&out, " %s %s %d %v", u.GetName(), u.GetUID(), u.GetGeneration(), u.GetDeletionTimestamp() != nil)
	}
	return out.String()
}

// unified returns the content of a Package with the Overlays that hold for it. It errors with a source.OverlayError.
func unified(p Package, plain *source.Snapshot, all []*unstructured.Unstructured) (*source.Snapshot, error) {
	var overlays []source.Overlay
	for _, u := range all {
		o, holds, err := overlayFor(p, u)
		if err != nil {
			return nil, err
		}
		if holds {
			overlays = append(overlays, o)
		}
	}
	return plain.WithOverlays(overlays)
}

// overlayFor returns an Overlay, and whether it holds for a Package. It errors with a source.OverlayError.
func overlayFor(p Package, u *unstructured.Unstructured) (source.Overlay, bool, error) {
	name := "Overlay/" + u.GetName()
	wrong := func(err error) (source.Overlay, bool, error) {
		return source.Overlay{}, false, &source.OverlayError{Err: fmt.Errorf("%s: spec.%w", name, err)}
	}
	if u.GetDeletionTimestamp() != nil {
		return source.Overlay{}, false, nil
	}
	var spec struct {
		PackageSelector *metav1.LabelSelector `json:"packageSelector"`
		Files           map[string]string     `json:"files"`
	}
	written, _, _ := unstructured.NestedMap(u.Object, "spec") // one that is no map has no files
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, &spec); err != nil {
		return wrong(err)
	}
	if spec.PackageSelector != nil { // as a selector, nil selects nothing
		selector, err := metav1.LabelSelectorAsSelector(spec.PackageSelector)
		if err != nil {
			return wrong(fmt.Errorf("packageSelector: %w", err))
		}
		if !selector.Matches(labels.Set(p.object.GetLabels())) {
			return source.Overlay{}, false, nil
		}
	}
	o, err := source.NewOverlay(name, spec.Files)
	return o, err == nil, err
}

// faultOf returns an error of files as a fault, with its place if it has one.
func faultOf(err error) fault.Fault {
	if d, ok := errors.AsType[*source.DependencyError](err); ok {
		return fault.Fault{Position: fault.Position{File: d.File, Line: d.Line}, Message: d.Error()}
	}
	if o, ok := errors.AsType[*source.OverlayError](err); ok && o.File != "" {
		return fault.Fault{Position: fault.Position{File: o.File, Line: o.Line}, Message: o.Error()}
	}
	return fault.Fault{Message: err.Error()}
}
