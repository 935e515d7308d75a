package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// largeObjectsSize limits the size of all large objects that are remembered.
const largeObjectsSize = 64 << 20

// largeObjects remembers the large objects that were read last, as no cache keeps them whole. So a
// large object is read once for each version.
type largeObjects struct{ last *recent }

func newLargeObjects() *largeObjects { return &largeObjects{newRecent(largeObjectsSize)} }

// readFull returns an object of a cache with all of its content, which it reads live if the cache has
// stripped the object. It returns nil for an object that is gone.
func (l *largeObjects) readFull(ctx context.Context, cached *unstructured.Unstructured, read func(context.Context, cluster.Ref) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if cached == nil || !isStripped(cached) {
		return cached, nil
	}
	ref := cluster.RefOf(cached)
	if known := l.last.get(ref); known != nil && known.GetResourceVersion() == cached.GetResourceVersion() {
		return known.DeepCopy(), nil
	}
	u, err := read(ctx, ref)
	if err != nil || u == nil {
		l.last.remove(ref)
		return nil, err
	}
	l.note(u)
	return u, nil
}

// note remembers an object unless it is small: a cache keeps small objects whole, and here they would
// only displace large ones.
func (l *largeObjects) note(u *unstructured.Unstructured) {
	if sizeOf(u.Object, largeObjectsSize) > limitOf(u) {
		l.last.add(cluster.RefOf(u), u.DeepCopy())
	}
}
