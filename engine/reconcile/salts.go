package reconcile

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
)

// salts remembers the salts of Secrets, by resource and then by component and object; its
// zero value is ready for use. A salt is kept by its Secret, and remembered for as long as
// that is not there: what the API server rejects is offered with the same one each time,
// and what somebody deletes or strips gets it back.
type salts struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[string]string
	// inputs are the keys of the Secrets that each input has found last.
	inputs map[types.NamespacedName]map[string][]string
}

// saltMemory are the salts of one resource, as a rollout uses them.
type saltMemory struct {
	*salts
	key   types.NamespacedName
	fresh func() string
}

var _ rollout.Salts = saltMemory{}

func (s *state) saltsOf() rollout.Salts {
	fresh := s.NewSalt
	if fresh == nil {
		fresh = randomSalt
	}
	return saltMemory{&s.salts, s.key(), fresh}
}

// randomSalt returns a salt that nobody can guess.
func randomSalt() string {
	raw := make([]byte, len(program.FixedSalt)/2)
	_, _ = rand.Read(raw) // it never errors
	return hex.EncodeToString(raw)
}

// Salt implements rollout.Salts.
func (m saltMemory) Salt(component, object, live string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of[m.key]
	if known == nil {
		known = map[string]string{}
		if m.of == nil {
			m.salts.of = map[types.NamespacedName]map[string]string{}
		}
		m.of[m.key] = known
	}
	place := component + "/" + object
	switch {
	case live != "":
		known[place] = live
	case known[place] == "":
		known[place] = m.fresh()
	}
	return known[place]
}

// Input implements rollout.Salts.
func (m saltMemory) Input(name string, found []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(found) == 0 {
		return m.inputs[m.key][name]
	}
	if m.inputs == nil {
		m.salts.inputs = map[types.NamespacedName]map[string][]string{}
	}
	if m.inputs[m.key] == nil {
		m.inputs[m.key] = map[string][]string{}
	}
	m.inputs[m.key][name] = found
	return found
}

// retain forgets the salts of a resource but those of what is in its inventory.
func (s *salts) retain(key types.NamespacedName, inventory ownership.Inventory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of[key]) == 0 {
		return
	}
	places := map[string]bool{}
	for _, g := range inventory {
		for _, e := range g.Objects {
			places[g.Component+"/"+e.Object] = true
		}
	}
	maps.DeleteFunc(s.of[key], func(place, _ string) bool { return !places[place] })
}

// forget drops what is remembered of a resource that is gone.
func (s *salts) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
	delete(s.inputs, key)
}
