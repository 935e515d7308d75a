package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/object"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Live is the Cluster of a real API server.
type Live struct {
	// Client writes, and reads from a cache that sees its own writes.
	Client client.Client
	// Direct reads from the API server, and writes without waiting for a cache.
	Direct client.Client
	// Kinds lists every kind that can be listed and deleted. If that is not known of some groups, it returns
	// the kinds of the others with the error of discovery.
	Kinds func() ([]schema.GroupVersionKind, error)
	// RecentKinds are Kinds as of some seconds ago; nil asks Kinds.
	RecentKinds func(context.Context) ([]schema.GroupVersionKind, error)
	// Lists are shared by the Lives of a process, so that many resources without an inventory do not list all
	// kinds each; nil shares nothing. User is as whom this Live lists.
	Lists *OwnedLists
	User  string
	// Namespaces are where Owned lists the kinds that the operator may not list in all namespaces; nil
	// is none.
	Namespaces object.Namespaces
	// Watch starts to watch a kind. It is called before each cached read and must be cheap once the
	// watch runs. It errors with a KindUnreadableError if the watch does not start. It is nil if the
	// kinds are watched already.
	Watch func(ctx context.Context, kind schema.GroupVersionKind) error
	// Schemas returns the types of kinds, to report all wrong fields of a rejected object; it may be
	// nil.
	Schemas Schemas
	// ReadFull completes an object of which the cache holds only a part. It calls read if it has to.
	// It is nil if the cache holds whole objects.
	ReadFull func(ctx context.Context, cached *unstructured.Unstructured, read func(context.Context, Ref) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error)
	// Creations are shared by the Lives of a process, so that no two of them create the same object;
	// it may be nil.
	Creations *Creations

	// dry is true if requests are dry runs. What one of them deletes is still there for the next.
	dry bool
}

var _ Cluster = (*Live)(nil)

// GetCached implements Cluster.
func (l *Live) GetCached(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if _, err := l.Scope(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	if l.Watch != nil {
		if err := l.Watch(ctx, ref.GroupVersionKind); err != nil {
			return nil, err
		}
	}
	u, err := l.cached(ctx, ref)
	if IsVersionsOnly(ctx) {
		return u, err
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return l.get(ctx, l.Direct, ref)
	}
	if err != nil || l.ReadFull == nil {
		return u, err
	}
	return l.ReadFull(ctx, u, l.GetLive)
}

// versionsKey is the key of VersionsOnly.
type versionsKey struct{}

// VersionsOnly returns a context for callers that only need to know which objects exist, and in which version. With
// it, the objects that GetCached returns may have nothing but their identity, UID and resourceVersion, because a
// cache may hold the rest in another form or not at all. GetCached then errors if the cache lags, because a caller
// that asks for many versions would otherwise wait for each one.
func VersionsOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, versionsKey{}, true)
}

// IsVersionsOnly reports whether a context is one of VersionsOnly.
func IsVersionsOnly(ctx context.Context) bool { return ctx.Value(versionsKey{}) != nil }

func (l *Live) cached(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, ownWritesTimeout)
	defer cancel()
	return l.get(ctx, l.Client, ref, client.UnsafeDisableDeepCopy) // a reader of the cache changes nothing
}

// GetLive implements Cluster.
func (l *Live) GetLive(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if _, err := l.Scope(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	return l.get(ctx, l.Direct, ref)
}

// get reads an object. It errors with what notServed returns if its kind is not served.
func (l *Live) get(ctx context.Context, r client.Reader, ref Ref, options ...client.GetOption) (*unstructured.Unstructured, error) {
	u, err := get(ctx, r, ref, options...)
	if IsKindNotServed(err) {
		return nil, l.notServed(ctx, ref.GroupVersionKind)
	}
	return u, err
}

func get(ctx context.Context, r client.Reader, ref Ref, options ...client.GetOption) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": ref.GroupVersion().String(), "kind": ref.Kind}}
	err := r.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u, options...)
	if unserved(err) {
		return nil, &KindNotServedError{Kind: ref.GroupVersionKind}
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, WrapError(ref, reading, err)
	}
	return u, nil
}

// Apply implements Cluster.
//
// The apply is forced, because the package owns every field that it renders. Whether the object may
// be written at all was decided before.
func (l *Live) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	defer l.Lists.noteWrite(object)
	if object.GetUID() == "" && !l.dry {
		return l.create(ctx, object)
	}
	return l.applyForced(ctx, object)
}

// applyForced applies an object. It is no patch, which could be encoded at less cost: controller-runtime would note the version of
// the answer for typed objects, and reads of unstructured ones would not wait for it.
func (l *Live) applyForced(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := object.ShallowCopy(u) // the answer comes in the place of all of it
	err := l.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err == nil {
		return out, nil
	}
	if unserved(err) {
		return nil, l.notServed(ctx, u.GroupVersionKind())
	}
	if wrong := l.schemaFault(ctx, u, err); wrong != nil {
		return nil, wrong
	}
	return nil, WrapError(RefOf(u), "applying", err)
}

// DryRun implements Cluster. It bypasses the cache, which never receives the result of a dry run.
func (l *Live) DryRun() Cluster {
	dry := client.NewDryRunClient(l.Direct)
	return &Live{Client: dry, Direct: dry, Kinds: l.Kinds, RecentKinds: l.RecentKinds, Namespaces: l.Namespaces, Watch: l.Watch, Schemas: l.Schemas, dry: true}
}

// HandOver implements Cluster.
func (l *Live) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	err := l.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(fields.DeepCopy()), client.FieldOwner(HandOverManager), client.ForceOwnership)
	if err != nil {
		return WrapError(RefOf(fields), "handing over fields", err)
	}
	return nil
}

// Replace implements Cluster.
func (l *Live) Replace(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	defer l.Lists.noteWrite(object)
	out := object.DeepCopy()
	if err := l.Direct.Update(ctx, out, client.FieldOwner(FieldManager)); err != nil {
		return nil, WrapError(RefOf(object), "replacing", err)
	}
	return out, nil
}

// Probe implements Cluster.
func (l *Live) Probe(ctx context.Context, object *unstructured.Unstructured) error {
	probe := object.DeepCopy()
	probe.SetUID("")
	err := l.Direct.Create(ctx, probe, client.DryRunAll)
	if err != nil && !apierrors.IsAlreadyExists(err) { // the storage says that last, after validation and admission
		return WrapError(RefOf(object), "probing", err)
	}
	return nil
}

// mayBeRefusedKey is the key of contexts whose requests may be refused.
type mayBeRefusedKey struct{}

// MayBeRefused reports whether a request of a context may well be refused: it looks for objects of all kinds, also
// of those that the operator may not list.
func MayBeRefused(ctx context.Context) bool { return ctx.Value(mayBeRefusedKey{}) != nil }

// Owned implements Cluster.
//
// The operator cannot have a kind in its cache that it may not list, so it has written no object of
// that kind, unless it was allowed to before. The log names these kinds.
func (l *Live) Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	if l.Lists == nil || l.Lists.label != label {
		return l.listOwned(ctx, namespace, client.MatchingLabels{label: value})
	}
	return l.Lists.owned(ctx, ownedPlace{l.User, namespace}, value, func(which client.ListOption) ([]*unstructured.Unstructured, error) {
		return l.listOwned(ctx, namespace, which)
	})
}

// errKindsUnknown is the error of a Live that was not told how to list kinds.
var errKindsUnknown = errors.New("which kinds there are is not known here")

// listOwned lists the objects of all kinds that have a label.
func (l *Live) listOwned(ctx context.Context, namespace string, which client.ListOption) ([]*unstructured.Unstructured, error) {
	if l.Kinds == nil {
		return nil, errKindsUnknown
	}
	kinds, err := l.Kinds()
	if err != nil {
		return nil, fmt.Errorf("listing kinds: %w", err)
	}
	var out []*unstructured.Unstructured
	looked := lookup{}
	ctx = context.WithValue(ctx, mayBeRefusedKey{}, true)
	for _, kind := range kinds {
		if scope, err := l.Scope(ctx, kind); namespace != "" && err == nil && scope == ClusterScoped {
			continue
		}
		list, err := l.labelled(ctx, kind, namespace, which, &looked)
		if unserved(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			u, err := metadataOnly(&list.Items[i], kind)
			if err != nil {
				return nil, err
			}
			out = append(out, u)
		}
	}
	if len(looked.near)+len(looked.nowhere) > 0 {
		logr.FromContextOrDiscard(ctx).Info("objects were looked for as far as the operator may list them",
			"namespaces", l.Namespaces.String(), "onlyThere", looked.near, "notAtAll", looked.nowhere)
	}
	return out, nil
}

// A lookup has the kinds that could not be listed in all namespaces: those that were listed in some, and those
// that were not listed at all.
type lookup struct{ near, nowhere []string }

// labelled lists the objects of a kind that have a label, in a namespace or in all of them. If that is
// not allowed, it lists those in the Live's namespaces, as far as it may.
func (l *Live) labelled(ctx context.Context, kind schema.GroupVersionKind, namespace string, label client.ListOption, looked *lookup) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := l.Direct.List(ctx, list, label, client.InNamespace(namespace))
	if !apierrors.IsForbidden(err) {
		return list, err
	}
	listed := false
	if namespace == "" {
		for _, near := range l.Namespaces {
			part := &metav1.PartialObjectMetadataList{}
			part.SetGroupVersionKind(list.GroupVersionKind())
			err := l.Direct.List(ctx, part, label, client.InNamespace(near))
			if err != nil && !apierrors.IsForbidden(err) {
				return list, err
			}
			listed = listed || err == nil
			list.Items = append(list.Items, part.Items...)
		}
	}
	if listed {
		looked.near = append(looked.near, kind.GroupKind().String())
	} else {
		looked.nowhere = append(looked.nowhere, kind.GroupKind().String())
	}
	return list, nil
}

func metadataOnly(m *metav1.PartialObjectMetadata, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of %s %s: %w", kind.Kind, m.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// Delete implements Cluster.
//
// The deletion is in the foreground: a Deployment exists until its pods are gone, so the objects that
// the pods depend on are not deleted before them.
func (l *Live) Delete(ctx context.Context, ref Ref, uid types.UID) error {
	writer, propagation := l.deletion(ctx, ref, uid)
	err := writer.Delete(ctx, ref.Object(uid), client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return WrapError(ref, "deleting", err)
	}
	return nil
}

// deletion returns the client and the propagation policy for the deletion of an object.
//
// The policy is foreground, so that the dependents are gone before the object. A custom resource
// with the teardown finalizer deletes its dependents itself and in order, which the garbage
// collector would not keep, so its policy is background.
//
// If the cache does not hold the object, because its label was removed, the client is the one
// without a cache: the deletion would never show in the cache, and reads would wait for it.
func (l *Live) deletion(ctx context.Context, ref Ref, uid types.UID) (client.Client, metav1.DeletionPropagation) {
	live, err := l.cached(ctx, ref)
	switch {
	case err != nil || live == nil || live.GetUID() != uid:
		return l.Direct, metav1.DeletePropagationForeground
	case slices.Contains(live.GetFinalizers(), TeardownFinalizer):
		return l.Client, metav1.DeletePropagationBackground
	default:
		return l.Client, metav1.DeletePropagationForeground
	}
}

// Scope implements Cluster.
func (l *Live) Scope(_ context.Context, kind schema.GroupVersionKind) (Scope, error) {
	mapping, err := l.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return "", &KindNotServedError{Kind: kind}
	}
	if redefined, ok := errors.AsType[*RedefinedError](err); ok {
		return "", &KindUnreadableError{Kind: kind, Cause: redefined}
	}
	if err != nil {
		return "", fmt.Errorf("looking up %s: %w", kind.Kind, err)
	}
	return scopeOf(mapping), nil
}

// ServedVersion implements Cluster. The RESTMapper does not know: it keeps versions that are gone.
func (l *Live) ServedVersion(ctx context.Context, kind schema.GroupKind) (string, error) {
	kinds, err := l.recentKinds(ctx)
	for _, k := range kinds {
		if k.GroupKind() == kind {
			return k.Version, nil
		}
	}
	if err == nil || onlyOthersFailed(err, kind.Group) {
		return "", nil
	}
	return "", fmt.Errorf("looking for versions of %s: %w", kind.Kind, err)
}

// recentKinds lists every kind as of some seconds ago, or as of now.
func (l *Live) recentKinds(ctx context.Context) ([]schema.GroupVersionKind, error) {
	switch {
	case l.RecentKinds != nil:
		return l.RecentKinds(ctx)
	case l.Kinds != nil:
		return l.Kinds()
	}
	return nil, errKindsUnknown
}

// ApplyStatus implements Cluster.
func (l *Live) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	err := l.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldManager), client.ForceOwnership)
	return client.IgnoreNotFound(err)
}
