package memory

import "maps"

// Clone returns another cluster with the same objects, which serves the same kinds. It has seen no changes, and
// accepts what this one accepts.
func (m *Cluster) Clone() *Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	owners := newOwnerIndex()
	for ref, u := range m.objects {
		owners.note(ref, nil, u)
	}
	return &Cluster{
		objects:    maps.Clone(m.objects), // a stored object is replaced, and never changed
		owners:     owners,
		served:     maps.Clone(m.served),
		version:    m.version,
		fields:     newFieldManagers(),
		refuse:     m.refuse,
		validates:  m.validates,
		namespaces: maps.Clone(m.namespaces),
	}
}
