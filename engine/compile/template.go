package compile

import (
	"encoding/json"
	"slices"
	"time"

	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// A Template gives the rollouts of all sessions of a shape. It is immutable and safe for concurrent
// use, and goes through JSON unchanged.
type Template struct {
	plain
	// shared is how many nodes are shared.
	shared int
	// guards are those of all parts, each once.
	guards []*template.Node
	// conditions decide about the form: their values are part of the shape. They are of no use
	// once the template is made.
	conditions []*template.Node
	// objects and predicates are how many there are of them in all components together.
	objects, predicates int
}

// plain is what a template consists of.
type plain struct {
	// Guards are true for the views that the template has an answer for, as well as those of components and of fields of
	// the status.
	Guards []*template.Node
	// Rollout is what is the same for all views, without manifests and status.
	Rollout program.Rollout
	// Components are what differs in each component, and then in each hook.
	Components []component
	Inputs     []input
	// Status are the author's fields of the status.
	Status []statusField
	// RequeueAfter is a duration as text.
	RequeueAfter *template.Node
	// Secrets are the secrets that the package itself has written.
	Secrets []string
	// SecretSpec are the values of the resource that Secrets are rendered from, sorted.
	SecretSpec []string
	// Divisible is true if each part of the template holds for all views that look the same to that part.
	Divisible bool
}

// A statusField is a field of the status.
type statusField struct {
	Name string
	// Value is nil if the field is not complete.
	Value  *template.Node
	Guards []*template.Node
}

// A component is what may differ in a component. What has no node is as in the rollout.
type component struct {
	When                     *predicate
	Requires, Verify, Failed []predicate
	// Checks are those of the edges.
	Checks []predicate
	// Timeout is a duration as text.
	Timeout *template.Node
	Objects []manifest
	// Guards are true for the views that it has an answer for.
	Guards []*template.Node
}

// A manifest is an object of a component.
type manifest struct {
	// Content is nil if the object is not complete.
	Content *template.Node
	// Namespace and Name are those of an object that is not complete.
	Namespace, Name *template.Node
}

// An input is what may differ in an input.
type input struct{ Namespace, Object, Selector *template.Node }

// MarshalJSON writes a template as JSON.
func (t *Template) MarshalJSON() ([]byte, error) { return json.Marshal(&t.plain) }

// UnmarshalJSON reads what MarshalJSON has written.
func (t *Template) UnmarshalJSON(text []byte) error {
	err := json.Unmarshal(text, &t.plain)
	t.share()
	return err
}

// share makes equal nodes one, and counts what an evaluation copies.
func (t *Template) share() {
	t.shared = template.Share(t.nodes())
	t.guards = nil
	seen := map[*template.Node]bool{}
	for _, at := range t.guardPlaces() {
		if !seen[*at] {
			seen[*at] = true
			t.guards = append(t.guards, *at)
		}
	}
	t.objects, t.predicates = 0, 0
	for _, c := range t.Components {
		t.objects += len(c.Objects)
		t.predicates += len(c.Requires) + len(c.Verify) + len(c.Failed)
	}
}

// An evaluation evaluates a template over one view.
type evaluation struct {
	*template.Evaluation
	// objects and predicates have room for those of all components: one allocation instead of
	// one for each component.
	objects    []program.Object
	predicates []program.Predicate
}

// cloned returns a copy of a slice that is a part of a larger one, and what is left of that.
func cloned[T any](s, room []T) (out, left []T) {
	if len(room) < len(s) {
		return slices.Clone(s), room
	}
	n := copy(room, s)
	return room[:n:n], room[n:]
}

// Size returns about how many bytes a template takes.
func (t *Template) Size() int {
	text, err := json.Marshal(t)
	if err != nil {
		return 0
	}
	return sizeOfText * len(text)
}

// sizeOfText is how many bytes a template takes for each byte of its text, about.
const sizeOfText = 3

// Eval returns the rollout of a session of the template's shape, by its view. It errors with
// template.ErrFallback if CUE has to be asked. The rollout may share parts with others, and must not
// be changed.
func (t *Template) Eval(view map[string]any) (r program.Rollout, err error) {
	e := &evaluation{Evaluation: template.NewEvaluation(view, t.shared)}
	if !e.True(t.guards) {
		return r, template.ErrFallback
	}
	e.objects, e.predicates = make([]program.Object, t.objects), make([]program.Predicate, t.predicates)
	r = t.Rollout
	r.Components, r.Hooks, r.Inputs = slices.Clone(r.Components), slices.Clone(r.Hooks), slices.Clone(r.Inputs)
	for i, c := range r.All() {
		if err := t.Components[i].eval(c, e); err != nil {
			return program.Rollout{}, err
		}
	}
	for i := range r.Inputs {
		if err := t.Inputs[i].eval(&r.Inputs[i], e); err != nil {
			return program.Rollout{}, err
		}
	}
	if r.Status, err = t.evalStatus(e); err != nil {
		return program.Rollout{}, err
	}
	if err := setDuration(&r.RequeueAfter, t.RequeueAfter, e); err != nil {
		return program.Rollout{}, err
	}
	if program.QuotesSecret(r, t.Secrets) {
		return program.Rollout{}, template.ErrFallback
	}
	return r, nil
}

// evalStatus returns the author's fields of the status, or nil without a status.
func (t *Template) evalStatus(e *evaluation) (map[string]any, error) {
	if t.Rollout.Status == nil {
		return nil, nil
	}
	out := make(map[string]any, len(t.Status))
	for _, f := range t.Status {
		if f.Value == nil {
			continue
		}
		v, err := e.Eval(f.Value)
		if err != nil {
			return nil, err
		}
		out[f.Name] = v
	}
	return out, nil
}

// evalAs returns what a node is, if it is of a type.
func evalAs[T any](n *template.Node, e *evaluation) (T, error) {
	v, err := e.Eval(n)
	if err != nil {
		var none T
		return none, err
	}
	out, ok := v.(T)
	if !ok {
		return out, template.ErrFallback
	}
	return out, nil
}

// set evaluates a node into a text, unless there is none.
func set(into *string, n *template.Node, e *evaluation) (err error) {
	if n != nil {
		*into, err = evalAs[string](n, e)
	}
	return err
}

// setDuration evaluates a node into a duration, unless there is none.
func setDuration(into *time.Duration, n *template.Node, e *evaluation) error {
	if n == nil {
		return nil
	}
	text, err := evalAs[string](n, e)
	if err != nil {
		return err
	}
	if *into, err = time.ParseDuration(text); err != nil {
		return template.ErrFallback
	}
	return nil
}

// eval completes a component for a view.
func (c *component) eval(into *program.Component, e *evaluation) error {
	if err := c.evalObjects(into, e); err != nil {
		return err
	}
	if err := setDuration(&into.Timeout, c.Timeout, e); err != nil {
		return err
	}
	if err := c.evalWhen(into, e); err != nil {
		return err
	}
	for _, part := range []struct {
		of   []predicate
		into *[]program.Predicate
	}{{c.Requires, &into.Requires}, {c.Verify, &into.Verify}, {c.Failed, &into.Failed}} {
		if len(part.of) > 0 {
			*part.into, e.predicates = cloned(*part.into, e.predicates)
		}
		for i := range part.of {
			if err := part.of[i].eval(&(*part.into)[i], e); err != nil {
				return err
			}
		}
	}
	return c.evalChecks(into, e)
}

// evalWhen decides whether a component should exist.
func (c *component) evalWhen(into *program.Component, e *evaluation) error {
	if c.When == nil {
		return nil
	}
	p := program.Predicate{Name: "when"}
	if err := c.When.eval(&p, e); err != nil {
		return err
	}
	into.When = program.WhenResult{Verdict: p.Verdict}
	if p.Verdict != program.True {
		into.When.Detail = p.ExplainWhen()
	}
	return nil
}

// evalChecks completes the edges of a component.
func (c *component) evalChecks(into *program.Component, e *evaluation) error {
	if len(c.Checks) > 0 {
		into.Edges = slices.Clone(into.Edges)
	}
	for i := range c.Checks {
		if into.Edges[i].Check == nil {
			continue
		}
		check := *into.Edges[i].Check
		if err := c.Checks[i].eval(&check, e); err != nil {
			return err
		}
		into.Edges[i].Check = &check
	}
	return nil
}

// evalObjects completes the objects of a component.
func (c *component) evalObjects(into *program.Component, e *evaluation) (err error) {
	if len(c.Objects) == 0 {
		return nil
	}
	into.Objects, e.objects = cloned(into.Objects, e.objects)
	for i, m := range c.Objects {
		o := &into.Objects[i]
		if m.Content != nil {
			if o.Manifest, err = evalAs[map[string]any](m.Content, e); err != nil {
				return err
			}
			meta, _ := o.Manifest["metadata"].(map[string]any)
			o.Identity.Namespace, _ = meta["namespace"].(string)
			o.Identity.Name, _ = meta["name"].(string)
		}
		if err := set(&o.Identity.Namespace, m.Namespace, e); err != nil {
			return err
		}
		if err := set(&o.Identity.Name, m.Name, e); err != nil {
			return err
		}
	}
	return nil
}

// eval completes an input for a view.
func (i *input) eval(into *program.Input, e *evaluation) error {
	if err := set(&into.Namespace, i.Namespace, e); err != nil {
		return err
	}
	if err := set(&into.Object, i.Object, e); err != nil {
		return err
	}
	if i.Selector == nil {
		return nil
	}
	labels, err := evalAs[map[string]any](i.Selector, e)
	if err != nil {
		return err
	}
	into.Selector = make(map[string]string, len(labels))
	for k, v := range labels {
		text, ok := v.(string)
		if !ok {
			return template.ErrFallback
		}
		into.Selector[k] = text
	}
	return nil
}

// frame returns a template that is as a rollout, without its manifests and its status.
func frame(r program.Rollout) *Template {
	r.Components, r.Hooks = slices.Clone(r.Components), slices.Clone(r.Hooks)
	t := &Template{}
	for _, c := range r.All() {
		t.Components = append(t.Components, component{Objects: make([]manifest, len(c.Objects))})
		c.Objects = slices.Clone(c.Objects)
		for i := range c.Objects {
			c.Objects[i].Manifest = nil
		}
	}
	t.Inputs = make([]input, len(r.Inputs))
	if r.Status != nil {
		r.Status = map[string]any{}
	}
	t.Rollout = r
	return t
}

// nodes returns the places of all nodes.
func (t *Template) nodes() []**template.Node {
	out := t.guardPlaces()
	for i := range t.Components {
		out = append(out, t.Components[i].nodes()...)
	}
	for i := range t.Inputs {
		in := &t.Inputs[i]
		out = append(out, &in.Namespace, &in.Object, &in.Selector)
	}
	for i := range t.Status {
		out = append(out, &t.Status[i].Value)
	}
	return append(out, &t.RequeueAfter)
}

// guardPlaces returns the places of all guards.
func (t *Template) guardPlaces() []**template.Node {
	var out []**template.Node
	add := func(guards []*template.Node) {
		for i := range guards {
			out = append(out, &guards[i])
		}
	}
	add(t.Guards)
	for _, c := range t.Components {
		add(c.Guards)
	}
	for _, f := range t.Status {
		add(f.Guards)
	}
	return out
}

// nodes returns the places of the nodes of a component but for its guards.
func (c *component) nodes() []**template.Node {
	out := []**template.Node{&c.Timeout}
	for _, p := range c.predicates() {
		out = append(out, &p.Value, &p.Left, &p.Right)
	}
	for j := range c.Objects {
		m := &c.Objects[j]
		out = append(out, &m.Content, &m.Namespace, &m.Name)
	}
	return out
}

// predicates returns the conditions of a component.
func (c *component) predicates() []*predicate {
	var out []*predicate
	if c.When != nil {
		out = append(out, c.When)
	}
	for _, part := range [][]predicate{c.Requires, c.Verify, c.Failed, c.Checks} {
		for i := range part {
			out = append(out, &part[i])
		}
	}
	return out
}
