package program

import (
	"iter"
	"slices"
	"time"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program/syntax"
)

// A Rollout is the result of evaluating one session. It is plain data, so that it can cross a
// process boundary.
type Rollout struct {
	// Invalid are the faults of the custom resource. If there are any, nothing else is set.
	Invalid fault.Faults
	// Misconfigured are the faults of the configuration. If there are any, nothing else is set.
	Misconfigured fault.Faults
	// Inputs are the objects that the package reads.
	Inputs []Input
	// Hooks run at the phases of the rollout.
	Hooks []Hook
	// Components are the package's components in the author's order.
	Components []Component
	// Status are the author's status fields that could be evaluated.
	Status map[string]any
	// StatusFaults are the author's status fields that can never be.
	StatusFaults fault.Faults
	// Unstored names the status fields that are left out because they are too large, or is "".
	Unstored string
	// RequeueAfter is after how long to reconcile again without an event; 0 means never.
	RequeueAfter time.Duration
}

// All yields the components and the hooks, as pointers into the rollout.
func (r *Rollout) All() iter.Seq2[int, *Component] {
	return func(yield func(int, *Component) bool) {
		for i := range r.Components {
			if !yield(i, &r.Components[i]) {
				return
			}
		}
		for i := range r.Hooks {
			if !yield(len(r.Components)+i, &r.Hooks[i].Component) {
				return
			}
		}
	}
}

// A Component is one component of a rollout.
type Component struct {
	Name string
	// When is whether the component should exist.
	When WhenResult
	// Edges are its dependencies, declared ones first.
	Edges []Edge
	// Requires are the conditions before it is applied.
	Requires []Predicate
	// Objects are what should exist, in the author's order. Whether they may be
	// applied is for Rendering to say.
	Objects []Object
	// Rendering is whether every object could be rendered.
	Rendering Rendering
	// Faults are the reasons for RenderedInvalid.
	Faults fault.Faults
	// Missing are messages about the values that it waits for if it is RenderedIncomplete.
	Missing []string
	// MissingAt are the paths of these values, in the order of Missing, "" where the message is hidden.
	MissingAt []string
	// Unset are the fields of the spec among Missing that are optional and not set, such
	// as spec.name: only a person can set them.
	Unset []string
	// Absent are the missing references, up to the first name that does not exist.
	Absent []syntax.Reference
	// MissingFrom are the components whose live objects or outputs have the missing values, as
	// far as is known.
	MissingFrom []string
	// Verify are the conditions of health.
	Verify []Predicate
	// Failed are the conditions of failure for good.
	Failed []Predicate
	// Timeout is how long it may wait; 0 means forever.
	Timeout time.Duration
	// Unserved is how it is treated while the cluster does not serve a kind of its
	// objects: UnservedWait or UnservedSkip.
	Unserved string
}

// A conditionID identifies a predicate of a component: by its part and its name. The part of the
// check of an edge is dependsOn, and its name is that of the component that the edge leads to.
type conditionID struct{ part, name string }

// conditions yields the predicates of a component, as pointers into it.
func (c *Component) conditions() iter.Seq2[conditionID, *Predicate] {
	return func(yield func(conditionID, *Predicate) bool) {
		for _, part := range []struct {
			name       string
			predicates []Predicate
		}{{"requires", c.Requires}, {"verify", c.Verify}, {"failed", c.Failed}} {
			for i := range part.predicates {
				if p := &part.predicates[i]; !yield(conditionID{part.name, p.Name}, p) {
					return
				}
			}
		}
		for _, e := range c.Edges {
			if e.Check != nil && !yield(conditionID{"dependsOn", e.To}, e.Check) {
				return
			}
		}
	}
}

// AwaitsInput reports whether the component waits for an object of an input.
func (c Component) AwaitsInput(name string) bool {
	return slices.ContainsFunc(c.Absent, func(r syntax.Reference) bool { return len(r.Path) > 1 && r.Path[0] == "inputs" && r.Path[1] == name })
}

// How a component is treated whose kinds are not served.
const (
	// UnservedWait: it waits, and what depends on it as well.
	UnservedWait = "wait"
	// UnservedSkip: it counts as nonexistent.
	UnservedSkip = "skip"
)

// WhenResult is the outcome of a component's when.
type WhenResult struct {
	// Verdict is Unknown or Broken while it cannot be decided.
	Verdict Verdict
	// Detail is why it is not True.
	Detail string
	// Unset is the field of the spec without which it stays Unknown, or "".
	Unset string
	// Absent is the reference without which it stays Unknown, as far as is known.
	Absent syntax.Reference
}

// Rendering is how far the objects of a component could be rendered.
type Rendering string

// The renderings.
const (
	// RenderedComplete means that every object is complete.
	RenderedComplete Rendering = "Complete"
	// RenderedIncomplete means that an object refers to something that does not exist yet.
	RenderedIncomplete Rendering = "Incomplete"
	// RenderedInvalid means that an object is wrong; nothing of the component is applied.
	RenderedInvalid Rendering = "Invalid"
)

// Until is what an edge awaits.
type Until string

// What an edge awaits.
const (
	// UntilVerified awaits that the component is healthy.
	UntilVerified Until = "verified"
	// UntilApplied awaits that the component's objects were written.
	UntilApplied Until = "applied"
)

// EdgeOrigin says where an edge comes from.
type EdgeOrigin string

// Where an edge comes from.
const (
	// Declared edges are written in dependsOn.
	Declared EdgeOrigin = "declared"
	// Derived edges come from a reference to outputs or live objects.
	Derived EdgeOrigin = "derived"
)

// An Edge is a dependency on another component.
type Edge struct {
	To     string
	Until  Until
	Origin EdgeOrigin
	// Optional edges do not exclude the dependent with its dependency. A derived
	// edge is optional: whether the reference matters shows in the rendering.
	Optional bool
	// If are the conditions under which a derived edge exists, as the author wrote them, or ""
	// if it always exists. An evaluation returns the edges whose conditions hold or are
	// undecided.
	If string
	// FromData is true if the edge, or the component that has it, exists because of data in
	// the custom resource. Computed is true if the name of the other component comes from data.
	FromData, Computed bool
	// Check is a further condition, or nil.
	Check *Predicate
	// Position is where the edge is written.
	Position fault.Position
}

// String returns where the edge is written, for the drawing of a cycle.
func (e Edge) String() string { return e.Position.String() }

// An Object is a Kubernetes object that should exist.
type Object struct {
	// Name is its name within the component.
	Name string
	// Identity is known also of an object that is not complete yet.
	Identity object.Ref
	// Manifest is the object itself; it is nil when it could not be rendered.
	Manifest map[string]any
	// Secrets are those that its content may come from, as far as the text of the package
	// shows. It is empty for a Secret.
	Secrets []SecretRef
	// NamedBySecret is true if its name or namespace may contain the content of a Secret.
	NamedBySecret bool
	Policy        Policy
	// Patchable are the fields that a Patch may change although by default none does.
	Patchable map[string]bool
	Position  fault.Position
}

// A SecretRef is a Secret that a package reads, by the name of the input, or one of its
// own, by component and object.
type SecretRef struct{ Input, Component, Object string }

// Policy is how an object is treated; see the contract's #Policy.
type Policy struct {
	Apply  string
	Delete string
	Adopt  bool
	Verify string
}

// RecreateOnImmutable is the value of Policy.Apply that has an object deleted and created anew if the API server refuses
// an update.
const RecreateOnImmutable = "recreateOnImmutable"

// Verdict is the outcome of a predicate.
type Verdict string

// The verdicts.
const (
	True    Verdict = "True"
	False   Verdict = "False"
	Unknown Verdict = "Unknown"
	Broken  Verdict = "Broken"
)

// A Predicate is a named condition and its verdict.
type Predicate struct {
	Name    string
	Verdict Verdict
	// Source is the condition as the author wrote it.
	Source   string
	Position fault.Position
	// Unset is the field of the spec without which it stays Unknown, or "".
	Unset string
	// Absent is the reference without which it stays Unknown, as far as is known.
	Absent syntax.Reference
	// Detail explains the verdict: the actual and the wanted value of a false comparison, the
	// missing reference, or the error.
	Detail string
}
