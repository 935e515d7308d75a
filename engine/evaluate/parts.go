package evaluate

import (
	"slices"
	"sync"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// A partStore has the parts of the templates of a package, each by what it rests on. A session whose shape is new, but
// of which each part has been seen, has a template that is assembled from those. So there is a compilation for each
// shape of a component, and not for each combination of them.
type partStore struct {
	views *program.Views

	mu sync.Mutex
	// held has the template of which a part is.
	held map[partID]*compile.Template
	// of has the parts of each template that are held.
	of map[*compile.Template][]partID
	// pins are those by which the keys of each part were made, the latest last.
	pins map[string][]template.Pins
	// stopped is true once a template differed from CUE: it may have been because of its parts.
	stopped bool
}

// A partID identifies a part of a template.
type partID struct {
	part string
	// roster are the components and hooks beside it: which there are decides about edges.
	roster string
	key    template.Key
}

// maxPartPins is how many choices of pins are tried for a part. Each costs a key, which is some microseconds. A tenant
// who makes many takes the place of those of others, whose sessions are compiled then.
const maxPartPins = 4

func newPartStore(views *program.Views) *partStore {
	return &partStore{
		views: views, held: map[partID]*compile.Template{}, of: map[*compile.Template][]partID{}, pins: map[string][]template.Pins{},
	}
}

// add notes the parts of a template that was compiled for a view by some pins.
func (s *partStore) add(view program.View, pins template.Pins, t *compile.Template) {
	roster := t.Roster()
	for _, part := range t.Parts(s.views) {
		of := s.views.PartPins(part, pins)
		s.hold(s.id(view, part, roster, of), of, t)
	}
}

// id returns what identifies a part of a view. The frame says which components there are.
func (s *partStore) id(view program.View, part, roster string, pins template.Pins) partID {
	if part == syntax.Frame {
		roster = ""
	}
	return partID{part, roster, view.PartShape(part, pins)}
}

// hold notes that a template has a part, unless another one has it.
func (s *partStore) hold(id partID, pins template.Pins, t *compile.Template) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[id] != nil || s.stopped {
		return
	}
	s.held[id] = t
	s.of[t] = append(s.of[t], id)
	all := s.pins[id.part]
	if slices.ContainsFunc(all, pins.Equal) {
		return
	}
	if len(all) == maxPartPins {
		all = slices.Delete(all, 0, 1)
	}
	s.pins[id.part] = append(all, pins)
}

// remove forgets the parts of a template that is no longer there.
func (s *partStore) remove(t *compile.Template) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.of[t] {
		delete(s.held, id)
	}
	delete(s.of, t)
}

// stop forgets all parts, and keeps none from now on.
func (s *partStore) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	clear(s.held)
	clear(s.of)
	clear(s.pins)
}

// find returns the template that has a part as a view needs it, and adds the pins of that to others. It returns nil if
// there is none.
func (s *partStore) find(view program.View, part, roster string, pins *template.Pins) *compile.Template {
	s.mu.Lock()
	choices := slices.Clone(s.pins[part])
	s.mu.Unlock()
	for _, of := range slices.Backward(choices) {
		id := s.id(view, part, roster, of)
		s.mu.Lock()
		t := s.held[id]
		s.mu.Unlock()
		if t != nil {
			*pins, _ = pins.Union(of)
			return t
		}
	}
	return nil
}

// assemble returns a template for a view from the parts of others, and the pins that its shape has, or nil if a part is
// missing.
func (s *partStore) assemble(view program.View, pins template.Pins) (*compile.Template, template.Pins) {
	frame := s.find(view, syntax.Frame, "", &pins)
	if frame == nil {
		return nil, pins
	}
	roster := frame.Roster()
	from := map[string]*compile.Template{}
	for _, part := range frame.Parts(s.views) {
		if part == syntax.Frame {
			continue
		}
		if from[part] = s.find(view, part, roster, &pins); from[part] == nil {
			return nil, pins
		}
	}
	t, err := frame.Assembled(s.views, func(part string) *compile.Template { return from[part] })
	if err != nil {
		return nil, pins // it was read from JSON, so that does not happen
	}
	return t, pins
}
