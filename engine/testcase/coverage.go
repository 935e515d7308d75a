package testcase

import (
	"cmp"
	"slices"
	"strings"

	"operetta.dev/engine/check"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

// A Point is something that a package can do, and whether some test has seen it.
type Point struct {
	// Kind is what it is about.
	Kind PointKind `json:"kind"`
	// Path is the part of the package, such as components.web.verify.available, or the field of the spec.
	Path string `json:"path"`
	// What is what happens, such as "is True".
	What    string         `json:"what"`
	Covered bool           `json:"covered"`
	At      fault.Position `json:"position,omitzero"`
}

// String returns the point as a sentence, as in "components.web.verify.available is True".
func (p Point) String() string { return p.Path + " " + p.What }

// A PointKind is what a Point is about.
type PointKind string

// The kinds, in the order in which they are reported.
const (
	PointComponent PointKind = "component"
	PointObject    PointKind = "object"
	PointPredicate PointKind = "predicate"
	PointHook      PointKind = "hook"
	PointBranch    PointKind = "branch"
)

// PointKinds are all kinds, in order.
var PointKinds = []PointKind{PointComponent, PointObject, PointPredicate, PointHook, PointBranch}

// coverage collects what decisions show.
type coverage struct {
	index  *syntax.Index
	points map[string]*Point
	// order are the keys of the points as they became known.
	order []string
	specs []any
}

// newCoverage returns the coverage of a package by no test.
func newCoverage(p *program.Program) *coverage {
	c := &coverage{index: p.Syntax(), points: map[string]*Point{}}
	for _, component := range p.Template() {
		c.know(component)
		objects, _ := c.index.Names("components", component.Name, "objects")
		for _, name := range objects { // also those that only some specs have
			c.object(component.Name, name)
		}
	}
	for _, h := range p.TemplateHooks() {
		if !strings.HasSuffix(h.Component.Name, "."+syntax.ComputedName) {
			c.point(PointHook, h.Component.Name, "runs", fault.Position{})
		}
	}
	return c
}

// point returns a point, which is known from now on.
func (c *coverage) point(kind PointKind, path, what string, at fault.Position) *Point {
	key := path + " " + what
	p := c.points[key]
	if p == nil {
		p = &Point{Kind: kind, Path: path, What: what, At: at}
		c.points[key] = p
		c.order = append(c.order, key)
	}
	return p
}

// know makes what a component can do known.
func (c *coverage) know(component program.Component) {
	path := "components." + component.Name
	c.point(PointComponent, path, "is rolled out", fault.Position{})
	for _, o := range component.Objects {
		c.object(component.Name, o.Name)
	}
	for _, p := range c.predicatesOf(component) {
		c.point(PointPredicate, p.path, "is True", p.at)
		c.point(PointPredicate, p.path, "is not True", p.at)
	}
}

// object returns the point that an object is rendered.
func (c *coverage) object(component, name string) *Point {
	return c.point(PointObject, "components."+component+".objects."+name, "is rendered", c.index.PositionOf("components", component, "objects", name))
}

// predicate is a condition of a component, and what it came to.
type predicate struct {
	path    string
	at      fault.Position
	verdict program.Verdict
}

// predicatesOf returns the conditions of a component that an author has written.
func (c *coverage) predicatesOf(component program.Component) []predicate {
	path := "components." + component.Name
	var out []predicate
	if at := c.index.PositionOf("components", component.Name, "when"); !at.IsZero() {
		out = append(out, predicate{path + ".when", at, component.When.Verdict})
	}
	for _, of := range []struct {
		name string
		all  []program.Predicate
	}{{"requires", component.Requires}, {"verify", component.Verify}, {"failed", component.Failed}} {
		for _, p := range of.all {
			out = append(out, predicate{path + "." + of.name + "." + p.Name, p.Position, p.Verdict})
		}
	}
	return out
}

// see notes what a decision shows.
func (c *coverage) see(out render.Output) {
	if out.CR != nil && len(out.Invalid) == 0 {
		c.specs = append(c.specs, out.CR["spec"])
	}
	hooks := map[string]bool{}
	for _, h := range out.Hooks {
		hooks[h.Component.Name] = true
	}
	for _, component := range out.Components {
		if hooks[component.Name] { // its phase has come
			c.point(PointHook, component.Name, "runs", fault.Position{}).Covered = true
			continue
		}
		c.know(component.Source)
		path := "components." + component.Name
		if component.State != status.Excluded {
			c.point(PointComponent, path, "is rolled out", fault.Position{}).Covered = true
		}
		for _, p := range c.predicatesOf(component.Source) {
			what := "is not True"
			if p.verdict == program.True {
				what = "is True"
			}
			c.point(PointPredicate, p.path, what, p.at).Covered = true
		}
	}
	for _, o := range out.Objects() {
		c.object(o.Component, o.Name).Covered = true
	}
}

// ran notes the hooks that a step of the operator has run. A decision shows only those whose phase lasts: after a
// deletion there is none.
func (c *coverage) ran(step dryrun.Step) {
	if c == nil {
		return // nobody asks, as in a test in Go
	}
	for _, e := range step.Changes {
		if e.Operation == cluster.Deleted || e.Object == nil {
			continue
		}
		component, _, _ := strings.Cut(e.Object.GetAnnotations()[ownership.ComponentAnnotation], "/")
		if strings.HasPrefix(component, "hooks.") {
			c.point(PointHook, component, "runs", fault.Position{}).Covered = true
		}
	}
}

// all returns all points, by kind, those of the source in its order and the branches of the spec last.
func (c *coverage) all(p *program.Program) []Point {
	var out []Point
	for _, key := range c.order {
		out = append(out, *c.points[key])
	}
	for _, choice := range check.CoveredChoices(p, c.specs) {
		out = append(out, Point{Kind: PointBranch, Path: choice.Path, What: "is " + choice.Label, Covered: choice.Covered})
	}
	slices.SortStableFunc(out, func(a, b Point) int {
		return cmp.Compare(slices.Index(PointKinds, a.Kind), slices.Index(PointKinds, b.Kind))
	})
	return out
}

// CoverageOf returns how many points of a kind are covered, and how many there are.
func CoverageOf(points []Point, kind PointKind) (covered, all int) {
	for _, p := range points {
		if p.Kind == kind {
			all++
			if p.Covered {
				covered++
			}
		}
	}
	return covered, all
}
