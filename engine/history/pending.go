package history

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Limits bound a Log.
type Limits struct {
	// Resources is how many resources are known, and Reconciles how many of the last reconciles of each.
	Resources, Reconciles int
	// Bytes is about what everything that is known takes, and Held what the objects take that wait to be compared.
	Bytes, Held int
}

// DefaultLimits are those of an operator.
var DefaultLimits = Limits{Resources: 10_000, Reconciles: 10, Bytes: 8 << 20, Held: 4 << 20}

const (
	// maxTriggers is how many different triggers of a reconcile are known.
	maxTriggers = 8
	// MaxFields is how many fields of a trigger are known.
	MaxFields = 8
	// maxText is how many bytes of a name or path are known.
	maxText = 256
)

// What parts of a Log take in memory besides their texts, about.
const (
	resourceSize, reconcileSize, triggerSize, requestSize = 600, 200, 400, 64
)

// pending is what has come for a resource and was not compared yet.
type pending struct {
	events []Event
	more   int
	// size is what the triggers take, and held what their objects take.
	size, held int
}

// add adds an event, and returns by how much the objects take more memory. An object that has changed several times is
// compared with what it was first. It is not compared at all if there is no room for what it was.
func (p *pending) add(e Event, size func(*unstructured.Unstructured) int, room int) (held int) {
	for i := range p.events {
		if known := &p.events[i]; same(known.Trigger, e.Trigger) {
			known.Count++
			known.Time = e.Time
			if known.Before != nil {
				known.After = e.After
			}
			return 0
		}
	}
	if len(p.events) >= maxTriggers {
		p.more++
		return 0
	}
	e.Count = 1
	e.Name, e.Namespace, e.Kind = short(e.Name), short(e.Namespace), short(e.Kind)
	if e.Before != nil {
		held = size(e.Before)
	}
	if held > room {
		e.Before, e.After, held = nil, nil, 0
	}
	p.events = append(p.events, e)
	p.size += triggerSize + len(e.Name) + len(e.Namespace)
	p.held += held
	return held
}

// same reports whether two triggers are about the same thing. What was done to an object is not a part of it, but that
// an object is gone is.
func same(a, b Trigger) bool {
	return a.Cause == b.Cause && a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name &&
		a.Digest == b.Digest && (a.Action == b.Action || a.Action == Created && b.Action == Changed)
}

// triggers returns the triggers of what has come. A nil function compares nothing.
func (p *pending) triggers(changes func(Event) []Change) []Trigger {
	out := make([]Trigger, len(p.events))
	for i, e := range p.events {
		out[i] = e.Trigger
		if changes != nil && e.After != nil {
			out[i].Changes = changes(e)
		}
	}
	return out
}

// sizeOfReconcile returns what a reconcile takes in memory, about.
func sizeOfReconcile(r Reconcile) int {
	n := reconcileSize + requestSize*len(r.Requests)
	for _, t := range r.Triggers {
		n += triggerSize + len(t.Name) + len(t.Namespace)
		for _, c := range t.Changes {
			n += requestSize + len(c.Manager)
			for _, f := range c.Fields {
				n += len(f)
			}
		}
	}
	return n
}

// short returns a text without what is too long of it, and not as a part of a larger one.
func short(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// Truncate returns a text as a Log keeps it: whoever makes a Change cuts the names of managers and fields so.
func Truncate(s string) string { return strings.Clone(short(s)) }
