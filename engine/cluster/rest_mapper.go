package cluster

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewRESTMapper returns the RESTMapper of a manager: controller-runtime's, which discovers kinds on
// demand, with a cache of its answers. Each read and write of an object looks up the scope of its kind,
// and that mapper searches the groups of all versions that it has discovered.
func NewRESTMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	m, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	return CacheMappings(m), nil
}

// CacheMappings returns a RESTMapper that remembers the mappings of kinds for mappingsFresh. It asks for
// a kind without a mapping each time, as its definition may be installed at any moment, and forgets
// all mappings then, because the other mapper discovers the group anew.
func CacheMappings(m meta.RESTMapper) meta.RESTMapper {
	return &cachedMapper{RESTMapper: m, known: map[schema.GroupVersionKind]*meta.RESTMapping{}}
}

type cachedMapper struct {
	meta.RESTMapper

	mu    sync.RWMutex
	known map[schema.GroupVersionKind]*meta.RESTMapping
	// until is when the known mappings are forgotten.
	until time.Time
}

// RESTMapping implements meta.RESTMapper. The caller must not change the mapping.
func (m *cachedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	key := kind.WithVersion(versions[0])
	if mapping := m.get(key); mapping != nil {
		return mapping, nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if err != nil || !now.Before(m.until) {
		clear(m.known)
		m.until = now.Add(mappingsFresh)
	}
	if err == nil {
		m.known[key] = mapping
	}
	return mapping, err
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
