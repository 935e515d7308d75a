package reconcile

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"sync"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
)

// salts remembers the salts of the Secrets of one resource. A Secret keeps its salt, and the
// process remembers it while the Secret is not there: so each attempt to create a Secret that the
// API server rejects has the same salt, and a Secret that is deleted or loses its annotations gets it back.
type salts struct {
	mu sync.Mutex
	// of are the salts by component and object.
	of map[string]string
	// inputs are the keys of the Secrets that each input has found last.
	inputs map[string][]string
}

// saltMemory gives one rollout the salts of its resource.
type saltMemory struct {
	*salts
	fresh func() string
}

var _ rollout.Salts = saltMemory{}

func (s *state) saltsOf() rollout.Salts {
	fresh := s.NewSalt
	if fresh == nil {
		fresh = randomSalt
	}
	return saltMemory{&s.memory.salts, fresh}
}

// randomSalt returns a salt that cannot be guessed.
func randomSalt() string {
	raw := make([]byte, len(program.FixedSalt)/2)
	_, _ = rand.Read(raw) // it never errors
	return hex.EncodeToString(raw)
}

// Salt implements rollout.Salts.
func (m saltMemory) Salt(component, object, live string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]string{}
	}
	place := component + "/" + object
	switch {
	case live != "":
		m.of[place] = live
	case m.of[place] == "":
		m.of[place] = m.fresh()
	}
	return m.of[place]
}

// Input implements rollout.Salts.
func (m saltMemory) Input(name string, found []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(found) == 0 {
		return m.inputs[name]
	}
	if m.inputs == nil {
		m.inputs = map[string][]string{}
	}
	m.inputs[name] = found
	return found
}

// retain forgets the salts of objects that are not in the inventory.
func (s *salts) retain(inventory ownership.Inventory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	places := map[string]bool{}
	for component, e := range inventory.Entries() {
		places[component+"/"+e.Object] = true
	}
	maps.DeleteFunc(s.of, func(place, _ string) bool { return !places[place] })
}
