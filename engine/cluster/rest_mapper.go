package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewRESTMapper returns the RESTMapper of a manager: controller-runtime's, which discovers kinds on demand, with a
// cache of its answers. Each read and write of an object looks up the scope of its kind, and that mapper searches the
// groups of all versions that it has discovered. It never asks again about a kind that it has found, so it is
// replaced by a new one when a kind turns out to have changed.
func NewRESTMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	anew := func() (meta.RESTMapper, error) { return apiutil.NewDynamicRESTMapper(config, httpClient) }
	m, err := anew()
	if err != nil {
		return nil, err
	}
	return cacheMappings(m, anew), nil
}

// CacheMappings returns a RESTMapper that remembers the mappings of kinds for mappingsFresh. It asks for
// a kind without a mapping each time, as its definition may be installed at any moment, and forgets
// all mappings then, because the other mapper discovers the group again.
func CacheMappings(m meta.RESTMapper) meta.RESTMapper {
	return cacheMappings(m, func() (meta.RESTMapper, error) { return m, nil })
}

func cacheMappings(m meta.RESTMapper, anew func() (meta.RESTMapper, error)) *cachedMapper {
	return &cachedMapper{
		RESTMapper: m, anew: anew, discovered: m,
		known: map[schema.GroupVersionKind]*meta.RESTMapping{}, first: map[schema.GroupVersionKind]*meta.RESTMapping{},
	}
}

type cachedMapper struct {
	meta.RESTMapper // for all but RESTMapping

	// anew returns a mapper that has discovered nothing yet.
	anew func() (meta.RESTMapper, error)

	mu sync.RWMutex
	// discovered is the mapper that is asked at present.
	discovered meta.RESTMapper
	known      map[schema.GroupVersionKind]*meta.RESTMapping
	// first are the first mappings of kinds. Each client and cache of controller-runtime keeps the one that
	// it was given first for as long as it exists.
	first map[schema.GroupVersionKind]*meta.RESTMapping
	// until is when the known mappings are forgotten, and renewed when everything was last discovered again.
	until, renewed time.Time
}

// A RedefinedError says that the definition of a kind was installed again, and its objects are at another path
// of the API server. No client of this process finds them there.
type RedefinedError struct{ was, is *meta.RESTMapping }

// Error says what has changed, and what to do about it.
func (e *RedefinedError) Error() string {
	return fmt.Sprintf("its definition has changed from %s to %s since the operator began to use it; restart the operator", placeOf(e.was), placeOf(e.is))
}

// placeOf says where the objects of a kind are.
func placeOf(m *meta.RESTMapping) string {
	return fmt.Sprintf("%s (scope %s)", m.Resource.Resource, scopeOf(m))
}

func scopeOf(m *meta.RESTMapping) Scope {
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return ClusterScoped
	}
	return Namespaced
}

// RESTMapping implements meta.RESTMapper. The caller must not change the mapping. It errors with a RedefinedError
// if the first mapping of the kind was another.
func (m *cachedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		return m.present().RESTMapping(kind, versions...)
	}
	key := kind.WithVersion(versions[0])
	if mapping := m.get(key); mapping != nil {
		return mapping, nil
	}
	mapping, err := m.present().RESTMapping(kind, versions...)
	if err == nil && m.differs(key, mapping) && m.renew() {
		mapping, err = m.present().RESTMapping(kind, versions...) // the definition may be as it was again
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if err != nil || !now.Before(m.until) {
		clear(m.known)
		m.until = now.Add(mappingsFresh)
	}
	if err != nil {
		return nil, err
	}
	if m.first[key] == nil {
		m.first[key] = mapping
	}
	if was := m.first[key]; placeOf(was) != placeOf(mapping) {
		return nil, &RedefinedError{was, mapping}
	}
	m.known[key] = mapping
	return mapping, nil
}

// get returns the mapping of a kind, or nil if it is unknown.
func (m *cachedMapper) get(key schema.GroupVersionKind) *meta.RESTMapping {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if time.Now().Before(m.until) {
		return m.known[key]
	}
	return nil
}

// present returns the mapper that is asked at present.
func (m *cachedMapper) present() meta.RESTMapper {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.discovered
}

// differs reports whether a mapping is another one than the first of its kind.
func (m *cachedMapper) differs(key schema.GroupVersionKind, mapping *meta.RESTMapping) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.first[key] != nil && placeOf(m.first[key]) != placeOf(mapping)
}

// renew forgets all mappings, and has everything discovered again. It does so every mappingsAgain at most, and
// reports whether it has.
func (m *cachedMapper) renew() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Before(m.renewed.Add(mappingsAgain)) {
		return false
	}
	m.renewed = now
	next, err := m.anew()
	if err != nil {
		return false // the present one is as good
	}
	m.discovered = next
	clear(m.known)
	return true
}

// notServed returns the error of a request whose path the API server does not know, although discovery had the
// kind: it is discovered again whether its definition is gone, or has changed.
func (l *Live) notServed(ctx context.Context, kind schema.GroupVersionKind) error {
	if m, ok := l.Client.RESTMapper().(*cachedMapper); ok {
		m.renew()
	}
	if _, err := l.Scope(ctx, kind); err != nil {
		return err
	}
	return &KindNotServedError{Kind: kind}
}
