package memory

import "operetta.dev/engine/cluster"

// A Watch reports each change of a Cluster since it began, once and in order, as an API
// server does to whoever watches all kinds. It is for one goroutine.
type Watch struct {
	memory *Cluster
	seen   int
}

// Watch returns a watch that begins now.
func (m *Cluster) Watch() *Watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Watch{memory: m, seen: len(m.events)}
}

// Next returns what has changed since the last call, or since the watch began.
func (w *Watch) Next() []cluster.Event {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	// Events are only ever added, and by themselves never change.
	next := w.memory.events[w.seen:len(w.memory.events):len(w.memory.events)]
	w.seen += len(next)
	return next
}

// Changes returns everything that was written so far, in order.
func (m *Cluster) Changes() []cluster.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]cluster.Change, len(m.events))
	for i, e := range m.events {
		out[i] = e.Change
	}
	return out
}
