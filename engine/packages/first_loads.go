package packages

import (
	"maps"
	"slices"
	"sync"
)

// firstLoads knows the Packages that existed when the process began, until each has been tried.
type firstLoads struct {
	mu       sync.Mutex
	expected map[string]bool
	done     map[string]bool
	all      chan struct{}
	// awaited says that expected is about to be known, and arrived has the Packages whose content is known,
	// or that have been tried. changed is called when incomplete may report something else than before.
	awaited bool
	arrived map[string]bool
	changed func()
}

// Await says that Expect is about to be called. Until the content of each Package that existed at the start is
// known, only what was accepted before is examined: a content that is new may loop, and must not keep others
// from being served again. A process that stands by calls it when it becomes the leader.
func (r *Reconciler) Await() {
	r.first.mu.Lock()
	defer r.first.mu.Unlock()
	r.first.awaited = true
	r.first.changed = func() { r.exams.next(r.Examiner.Slots(), r.first.incomplete) }
}

// Loaded returns a channel that is closed once each Package that existed at the start has been tried.
func (r *Reconciler) Loaded() <-chan struct{} {
	r.first.mu.Lock()
	defer r.first.mu.Unlock()
	return r.first.channel()
}

// Expect says which Packages exist at the start.
func (r *Reconciler) Expect(names []string) {
	r.first.expect(names)
	r.first.notify()
}

func (f *firstLoads) expect(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expected = map[string]bool{}
	for _, name := range names {
		if !f.done[name] {
			f.expected[name] = true
		}
	}
	f.closeIfEmpty()
}

// tried says that a Package has been tried.
func (f *firstLoads) tried(name string) {
	f.noteContent(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.expected == nil {
		if f.done == nil {
			f.done = map[string]bool{}
		}
		f.done[name] = true
		return
	}
	delete(f.expected, name)
	f.closeIfEmpty()
}

// noteContent says that the content of a Package is known.
func (f *firstLoads) noteContent(name string) {
	f.mu.Lock()
	known := f.arrived[name] || !f.awaited
	if !known {
		if f.arrived == nil {
			f.arrived = map[string]bool{}
		}
		f.arrived[name] = true
	}
	f.mu.Unlock()
	if !known {
		f.notify()
	}
}

// notify calls changed.
func (f *firstLoads) notify() {
	f.mu.Lock()
	changed := f.changed
	f.mu.Unlock()
	if changed != nil {
		changed()
	}
}

// incomplete reports whether there are Packages of the start whose content is not known yet.
func (f *firstLoads) incomplete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaited {
		return false
	}
	return f.expected == nil || slices.ContainsFunc(slices.Collect(maps.Keys(f.expected)), func(name string) bool { return !f.arrived[name] })
}

func (f *firstLoads) closeIfEmpty() {
	f.done = nil
	if len(f.expected) > 0 {
		return
	}
	select {
	case <-f.channel():
	default:
		close(f.channel())
	}
}

// Begun knows the Packages that a process has found at its start, until it has taken each as far as it goes for now: whether it decides
// or follows.
type Begun struct{ first firstLoads }

// Expect says which Packages there are.
func (b *Begun) Expect(names []string) { b.first.expect(names) }

// All returns a channel that is closed once each of them has been taken that far.
func (b *Begun) All() <-chan struct{} {
	b.first.mu.Lock()
	defer b.first.mu.Unlock()
	return b.first.channel()
}

// triedIn returns a function that says in some places that a Package has been tried.
func triedIn(in ...*firstLoads) func(name string) {
	return func(name string) {
		for _, f := range in {
			f.tried(name)
		}
	}
}

func (f *firstLoads) channel() chan struct{} {
	if f.all == nil {
		f.all = make(chan struct{})
	}
	return f.all
}
