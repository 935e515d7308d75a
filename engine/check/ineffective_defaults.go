package check

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// ineffective finds fields of inputs that have no effect, because a default always takes their place and so hides the
// error that they cause: the package says the same with every value that was tried, in every case.
func (c *checker) ineffective(ctx context.Context, selections []selection) error {
	looked := map[string]bool{}
	for _, d := range c.defaulted {
		path := pathText(d.Path)
		s := c.textSamples[path]
		if s == nil || !d.Replaced || looked[path] || c.options.enough() {
			continue
		}
		if looked[path] = true; len(looked) > maxEffects {
			continue
		}
		at, err := c.isIneffective(ctx, s, selections)
		if err != nil {
			return err
		}
		if at == nil {
			continue
		}
		c.found = append(c.found, found{problem{
			fault: fault.Fault{
				Position: d.Position, Path: syntax.Reference{Path: d.Path}.String(),
				Message: "it changes nothing, because its default takes its place whatever it is",
				Hint:    "give it the type of the field that it goes to, as in strconv.Atoi",
			},
			live: at.inputsGiven(), early: true, isSmall: true,
		}, at.selection})
	}
	if len(looked) > maxEffects {
		c.report.Parts = append(c.report.Parts, Truncation{Path: "inputs", Unit: "fields with a default", Tried: maxEffects, Of: len(looked)})
	}
	return nil
}

// maxEffects is for how many fields of inputs it is found out whether they change anything.
const maxEffects = 60

// isIneffective returns the trial of a small case in which no value of a field changes anything, or nil if there is a case
// in which one does, or no case at all.
func (c *checker) isIneffective(ctx context.Context, s *sample, selections []selection) (*trial, error) {
	var small *trial
	for _, selection := range selections {
		selection = c.smallestWith(s, selection)
		t := c.trial(selection)
		if !slices.Contains(t.samples, s) {
			continue
		}
		if c.options.enough() {
			return nil, nil
		}
		changes, err := t.changesWith(ctx, s)
		if err != nil || changes {
			return nil, err
		}
		if small == nil {
			small = t
		}
	}
	return small, nil
}

// changesWith reports whether another value of a field changes what the package says. It leaves the first one.
func (t *trial) changesWith(ctx context.Context, s *sample) (bool, error) {
	before := s.at
	defer func() { s.at = before }()
	if _, err := t.begin(); err != nil || t.out.refused {
		return false, err
	}
	if err := t.run(ctx); err != nil {
		return false, err
	}
	if ready, _ := t.world.Ready(t.ref); !ready {
		return true, nil // there may be effects that do not show
	}
	said := t.last.Rollout
	for at := range s.absent() + 1 {
		s.at = at
		now, err := t.saysWith(ctx)
		if err != nil || !reflect.DeepEqual(said, now) {
			return err == nil, err
		}
	}
	s.at = before
	_, err := t.saysWith(ctx)
	return false, err
}

// saysWith returns what the package says with the objects of inputs that are made now.
func (t *trial) saysWith(ctx context.Context) (program.Rollout, error) {
	for ref := range t.given {
		if live := t.world.Get(ref); live != nil {
			if err := t.world.Cluster.DeleteInBackground(ref, live.GetUID()); err != nil {
				return program.Rollout{}, fmt.Errorf("an input: %w", err)
			}
		}
	}
	t.madeResource, t.uids = t.make(t.selection), 0
	clear(t.given)
	clear(t.merged)
	_, err := t.giveInputs(ctx)
	return t.last.Rollout, err
}

// smallestWith returns the simplest choices with which a case has a value.
func (c *checker) smallestWith(s *sample, from selection) selection {
	out, _ := simplified(from, func(simpler selection) (bool, error) {
		return slices.Contains(c.make(simpler).samples, s), nil // it never errors
	})
	for i := range out {
		if out[i] == 0 {
			continue
		}
		was := out[i]
		if out[i] = 0; !slices.Contains(c.make(out).samples, s) {
			out[i] = was
		}
	}
	return out
}
