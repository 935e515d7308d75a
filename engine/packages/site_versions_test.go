package packages

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/program"
)

// versionsOfSite is what a site does with several versions of a package.
type versionsOfSite struct {
	// unpinned is why the Server cannot be told of pins.
	unpinned error
	// definitionOf returns the definition of a content; nil is one without versions.
	definitionOf func(text string) *definition
}

func (s *site) Canary(_ context.Context, _ *program.Program, c *Canary) error {
	s.canary = c
	s.callf("canary %s", s.selected())
	return nil
}

// selected returns the names of the resources that are reconciled with the version of a canary.
func (s *site) selected() string {
	if s.canary == nil {
		return "ends"
	}
	var names []string
	for _, u := range s.resources {
		if s.canary.Selects(u) {
			names = append(names, u.Name)
		}
	}
	return strings.Join(names, " ")
}

func (s *site) Pins(_ context.Context, _ schema.GroupKind, pins Pins) error {
	if s.unpinned != nil {
		return s.unpinned
	}
	s.pins = pins
	return nil
}

func (s *site) Requeue(_ *program.Program, all []Resource) error {
	for _, u := range all {
		s.callf("reconcile %s", u.Name)
	}
	return nil
}
