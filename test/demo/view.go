package main

import (
	"slices"
	"strings"

	"operetta.dev/engine/graph"
	"operetta.dev/test/internal/screen"
)

// A view is a custom resource at one moment of a dry run. On a cluster, operetta explain draws.
type view struct {
	resource resource
	// simulated are the objects that the dry run has made ready.
	simulated map[entry]bool
}

// draw returns the lines of a picture: the resource, and its components with their
// objects, each below what it depends on.
func (v view) draw(ink screen.Ink) []string {
	r := v.resource
	title := ink.Bold(r.Kind + "/" + r.Metadata.Name)
	if r.Status.Phase == "" {
		return []string{title + "  " + ink.Dim("no status yet")}
	}
	phase := phaseInk(ink, r.Status.Phase)(r.Status.Phase)
	lines := []string{title + "  " + phase + "  " + ink.Dim(r.Status.ComponentsReady+" components")}
	// Edges that the operator wrote have no cycle.
	picture, _ := v.graph().Tree(v.text(ink))
	for line := range strings.Lines(picture) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	if out := v.excluded(); len(out) > 0 {
		lines = append(lines, ink.Dim("not wanted by the spec: "+strings.Join(out, ", ")))
	}
	return lines
}

// graph returns the components that have something to show, in the author's order.
func (v view) graph() *graph.Graph[string, string] {
	g := graph.New[string, string]()
	left := v.excluded()
	for _, c := range v.resource.Status.Components {
		if !slices.Contains(left, c.Name) {
			g.AddNode(c.Name)
		}
	}
	for _, group := range v.resource.Status.Inventory {
		g.AddNode(group.Component)
	}
	for _, group := range v.resource.Status.Inventory {
		for _, on := range group.DependsOn {
			// A component without objects is not in the inventory; its edge is not shown.
			_ = g.AddEdge(group.Component, on, "")
		}
	}
	return g
}

// excluded returns the components that should not exist and do not.
func (v view) excluded() []string {
	var out []string
	for _, c := range v.resource.Status.Components {
		has := slices.ContainsFunc(v.resource.Status.Inventory, func(g group) bool { return g.Component == c.Name })
		if c.State == "Excluded" && !has {
			out = append(out, c.Name)
		}
	}
	return out
}

// text returns what says the lines of a component.
func (v view) text(ink screen.Ink) func(string) []string {
	return func(name string) []string { return append([]string{v.label(ink, name)}, v.lines(ink, name)...) }
}

func (v view) component(name string) component {
	for _, c := range v.resource.Status.Components {
		if c.Name == name {
			return c
		}
	}
	// The object is only in the inventory: the package no longer renders it.
	return component{Name: name, State: "Deleting"}
}

func (v view) label(ink screen.Ink, name string) string {
	c := v.component(name)
	return name + "  " + stateInk(ink, c.State)(stateMark(c.State)+" "+c.State)
}

func (v view) lines(ink screen.Ink, name string) []string {
	var out []string
	c := v.component(name)
	if c.Message != "" && c.State != "Verified" {
		out = append(out, ink.Dim(strings.Join(strings.Fields(c.Message), " ")))
	}
	for _, g := range v.resource.Status.Inventory {
		if g.Component != name {
			continue
		}
		for _, e := range g.Objects {
			line := e.Kind + "/" + e.Name
			if v.simulated[e] {
				line += "  " + ink.Good("ready") + ink.Dim(", simulated")
			}
			out = append(out, line)
		}
	}
	return out
}

func phaseInk(ink screen.Ink, phase string) func(string) string {
	switch phase {
	case "Ready":
		return ink.Good
	case "Failed":
		return ink.Bad
	}
	return ink.Warn
}

func stateInk(ink screen.Ink, state string) func(string) string {
	switch state {
	case "Verified":
		return ink.Good
	case "Failed", "Held":
		return ink.Bad
	case "Excluded":
		return ink.Dim
	}
	return ink.Warn
}

func stateMark(state string) string {
	switch state {
	case "Verified":
		return "✓"
	case "Failed", "Held":
		return "✗"
	case "Deleting", "Excluded":
		return "-"
	}
	return "…"
}
