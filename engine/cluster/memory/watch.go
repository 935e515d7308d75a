package memory

import "operetta.dev/engine/cluster"

// A Watch returns each change of a Cluster since it was started, once and in order, as a watch of all
// kinds on an API server would. It is for one goroutine.
type Watch struct {
	memory *Cluster
	seen   int
}

// Watch starts a watch.
func (m *Cluster) Watch() *Watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Watch{memory: m, seen: len(m.events)}
}

// Next returns the changes since the last call, or since the watch was started.
func (w *Watch) Next() []cluster.ObjectChange {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	// Events are only appended, and never modified.
	next := w.memory.events[w.seen:len(w.memory.events):len(w.memory.events)]
	w.seen += len(next)
	return next
}

// Changes returns all writes so far, in order.
func (m *Cluster) Changes() []cluster.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]cluster.Change, len(m.events))
	for i, e := range m.events {
		out[i] = e.Change
	}
	return out
}
