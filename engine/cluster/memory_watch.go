package cluster

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// A Verb is what a change does to an object.
type Verb string

// The verbs.
const (
	Created Verb = "create"
	Updated Verb = "update"
	Deleted Verb = "delete"
)

// A Change is something that was written.
type Change struct {
	Verb Verb
	Ref  Ref
}

// String returns the change on one line.
func (c Change) String() string { return string(c.Verb) + " " + c.Ref.String() }

// An Event is a change as a watch reports it.
type Event struct {
	Change
	// Before is what was there, or nil, and Object what the change has made of it; of
	// one that is gone, that is its last state. Neither is to be changed.
	Before, Object *unstructured.Unstructured
}

// A Watch reports each change of a Memory since it began, once and in order, as an API
// server does to whoever watches all kinds. It is for one goroutine.
type Watch struct {
	memory *Memory
	seen   int
}

// Watch returns a watch that begins now.
func (m *Memory) Watch() *Watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Watch{memory: m, seen: len(m.events)}
}

// Next returns what has changed since the last call, or since the watch began.
func (w *Watch) Next() []Event {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	// Events are only ever added, and by themselves never change.
	next := w.memory.events[w.seen:len(w.memory.events):len(w.memory.events)]
	w.seen += len(next)
	return next
}

// Changes returns everything that was written so far, in order.
func (m *Memory) Changes() []Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]Change, len(m.events))
	for i, e := range m.events {
		out[i] = e.Change
	}
	return out
}
