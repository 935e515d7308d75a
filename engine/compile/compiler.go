package compile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// A Compiler makes the templates of one package. It is safe for concurrent use, one template at a
// time.
type Compiler struct {
	program *program.Program
	pins    template.Pins

	mu sync.Mutex
	// full and open are the package, with and without the schema of its resource, in contexts
	// that are thrown away after some templates. They are nil until they are needed.
	full, open *program.Recompiled
	attempts   int
	// reads are the values that the schema of the resource reads.
	reads reads
}

// maxAttempts is how many evaluations with holes are made in one context of CUE, which keeps what they were
// written as.
const maxAttempts = 200

// maxObjects is how many objects a session may render for a template. Each pin that is found costs one more
// evaluation of all of them, and a template takes more memory than what it gives: for hundreds of objects, CUE is
// cheaper as long as few resources have the same shape.
const maxObjects = 100

// A Result is what came of one session.
type Result struct {
	// Rollout and Err are what CUE says.
	Rollout program.Rollout
	Err     error
	// Template holds for all sessions of the shape that the session has with Pins. It is nil if
	// there is none: if the session is faulty, which says nothing about others of its shape, or
	// if Untranslated has a reason that says so.
	Template *Template
	// Pins are those that were given and those that the template needs.
	Pins template.Pins
	// Untranslated are the reasons for pins that were added, and for which there is no template.
	Untranslated []Reason
	// Inconclusive is true if there is no template for a reason that says nothing of other sessions.
	Inconclusive bool
}

// A Reason says what could not be translated.
type Reason struct {
	Position fault.Position
	// Path is the value of the package, such as components.web.objects.deployment.spec.
	Path    string
	Message string
	Hint    string
}

// New returns a compiler for a package.
func New(p *program.Program) *Compiler {
	c := &Compiler{program: p}
	for _, root := range []string{"config", "layers", "secrets"} {
		c.pins, _ = c.pins.With(root)
	}
	for _, r := range p.Syntax().Deciding() {
		if len(r.Path) > 1 && slices.Contains(filled, r.Path[0]) {
			c.pins, _ = c.pins.With(elements(r.Path)...)
		}
	}
	return c
}

// filled are the fields of a package that the parts of a view are filled into.
var filled = []string{"cr", "live", "inputs", "config"}

// elements returns the path of a reference as pins have it.
func elements(path []string) []string {
	out := slices.Clone(path)
	for i, name := range out {
		if name == syntax.Each {
			out[i] = template.Anywhere
		}
	}
	return out
}

// Pins returns the pins with which to begin.
func (c *Compiler) Pins() template.Pins { return c.pins }

// Compile evaluates a session by CUE, and makes a template for its shape. The rollout is that of
// Program.Evaluate.
func (c *Compiler) Compile(s program.Session, pins template.Pins) (out Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out.Pins = pins
	if out.Rollout, out.Err = c.program.Evaluate(s); out.Err != nil || faulty(out.Rollout) {
		return out
	}
	if n := objects(out.Rollout); n > maxObjects {
		out.Untranslated = []Reason{{Path: "components", Message: fmt.Sprintf("there are %d objects, and templates are made for at most %d", n, maxObjects)}}
		return out
	}
	defer func() {
		if recover() != nil { // CUE panics at some values
			c.full, c.open = nil, nil
			out.Template, out.Pins, out.Untranslated = nil, pins, []Reason{untranslatedf("", "CUE panics where it is translated").Reason}
		}
	}()
	u := &unit{Compiler: c, session: s, view: c.program.Views().Of(s).Seen(), want: out.Rollout, root: c.program.FillSession(s)}
	var err error
	if u.resource, err = program.ResourceOf(u.root); err != nil {
		return out
	}
	out.Template, out.Pins, out.Untranslated = u.search(pins)
	out.Inconclusive = out.Template == nil && u.fellBack
	return out
}

// objects returns how many objects a rollout has.
func objects(r program.Rollout) int {
	n := 0
	for _, c := range r.All() {
		n += len(c.Objects)
	}
	return n
}

// faulty reports whether a rollout has faults, whose messages quote what is wrong.
func faulty(r program.Rollout) bool {
	if len(r.Invalid)+len(r.Misconfigured)+len(r.StatusFaults) > 0 || r.Unstored != "" {
		return true
	}
	for _, c := range r.All() {
		if len(c.Faults) > 0 {
			return true
		}
	}
	return false
}

// prepare compiles the package into contexts that may be thrown away.
func (c *Compiler) prepare() (err error) {
	if c.attempts++; c.attempts > maxAttempts {
		c.full, c.open, c.attempts = nil, nil, 1
	}
	if c.full != nil {
		return nil
	}
	if c.full, err = c.program.Recompile(func(inst *build.Instance) {
		declareLive(inst)
		decide := conditionsAsFields(c.program.Syntax(), inst.Files)
		c.reads = readsOf(inst) // those conditions are guards, and read nothing
		decide()
	}); err != nil {
		return err
	}
	c.open, err = open(c.program)
	return err
}

// A unit is one session that is compiled.
type unit struct {
	*Compiler
	session program.Session
	view    map[string]any
	// resource is the custom resource with the defaults of its schema.
	resource map[string]any
	want     program.Rollout
	// root is the package with the session in it.
	root cue.Value
	// fellBack is true once a template had no answer for the session itself.
	fellBack bool
}

// attempt makes a template with some pins.
func (u *unit) attempt(pins template.Pins) (*Template, error) {
	if err := u.prepare(); err != nil {
		return nil, err
	}
	guards, err := u.guardResource(pins)
	if err != nil {
		return nil, err
	}
	h := newHoles()
	data := maps.Clone(u.view)
	data["cr"] = u.resource
	root := u.open.Fill(u.fill(h, data, pins))
	held, err := u.open.RolloutOf(root, u.session)
	if err != nil {
		return nil, untranslatedf("components", "values decide which components there are")
	}
	t := &rolloutTranslator{
		translator: newTranslator(h, root, u.program.Syntax()), want: u.want, held: held, view: u.view, real: u.root,
		locate: func(component string, condition cue.Value) program.Predicate {
			return u.program.Located(u.root, component, condition.Path())
		},
	}
	conditions, err := t.conditionsOf(root)
	if err != nil {
		return nil, err
	}
	out, err := t.translate()
	if err != nil {
		return nil, err
	}
	out.Guards, out.Secrets = append(guards, out.Guards...), u.program.Secrets().Literals()
	out.divide(u.program.Views(), conditions)
	if err := u.keepsSecrets(out, h); err != nil {
		return nil, err
	}
	out.share()
	return out, u.verify(out, h)
}

// fill returns the parts of a view as CUE with holes, and with what asks for presence and values.
func (u *unit) fill(h *holes, data map[string]any, pins template.Pins) ast.Expr {
	s := &ast.StructLit{}
	there := map[string]any{}
	for _, root := range filled {
		if part, ok := data[root]; ok {
			there[root] = part
			s.Elts = append(s.Elts, &ast.Field{Label: ast.NewIdent(root), Value: h.syntax(part, u.view[root], pins.Below(root), []string{root})})
		}
	}
	asked, _ := presence(there).(*ast.StructLit)
	values := newHoles().syntax(u.known(), nil, template.Pins{}, nil)
	asked.Elts = append(asked.Elts, &ast.Field{Label: ast.NewString(program.ValuesField), Value: values})
	s.Elts = append(s.Elts, &ast.Field{Label: ast.NewIdent("live"), Value: ast.NewStruct(ast.NewString(program.PresenceField), asked)})
	return s
}

// known returns the data that conditions find: the custom resource has its defaults.
func (u *unit) known() map[string]any {
	out := map[string]any{"cr": u.resource}
	for _, root := range []string{"live", "inputs"} {
		if part, ok := u.view[root]; ok {
			out[root] = part
		}
	}
	return out
}

// guardResource returns what a custom resource has to meet to be valid.
func (u *unit) guardResource(pins template.Pins) ([]*template.Node, error) {
	h := newHoles()
	root := u.full.Fill(u.fill(h, u.view, pins))
	t := newTranslator(h, root, u.program.Syntax())
	if err := t.given(program.Lookup(root, "cr"), u.resource, u.view["cr"]); err != nil {
		return nil, err
	}
	return t.guards, nil
}

// given guards the constraints on what is given, and errors if a default rests on it.
func (t *translator) given(v cue.Value, data, view any) error {
	switch view := view.(type) {
	case map[string]any:
		fields, _ := data.(map[string]any)
		return t.givenFields(v, fields, view)
	case []any:
		elements, _ := data.([]any)
		return t.givenElements(v, elements, view)
	}
	if !t.rests(v) {
		return nil
	}
	_, err := t.node(v)
	return err
}

func (t *translator) givenFields(v cue.Value, data, view map[string]any) error {
	if _, err := t.chosen(v); err != nil {
		return err
	}
	if err := t.unnamed(v); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		field := program.Lookup(v, name)
		if given, ok := view[name]; ok {
			if err := t.given(field, data[name], given); err != nil {
				return err
			}
		} else if t.rests(field) {
			return t.fail(field, "a default depends on values")
		}
	}
	return nil
}

// unnamed guards the constraints of a schema that are in no field of a resource: in hidden fields and
// definitions. It errors if values decide which constraints there are.
func (t *translator) unnamed(v cue.Value) error {
	if _, err := v.Fields(cue.Concrete(true)); err != nil {
		return t.undecided(v, err)
	}
	return t.guardHidden(v)
}

// guardHidden guards what is in hidden fields and definitions.
func (t *translator) guardHidden(v cue.Value) error {
	it, err := v.Fields(cue.Hidden(true), cue.Definitions(true))
	if err != nil {
		return t.undecided(v, err)
	}
	for it.Next() {
		if it.Selector().LabelType() == cue.StringLabel || isLet(it.Selector()) || !t.rests(it.Value()) {
			continue
		}
		n, err := t.member(it.Value())
		if err != nil {
			return err
		}
		if err := t.guardValue(v, n); err != nil {
			return err
		}
	}
	return nil
}

func (t *translator) givenElements(v cue.Value, data, view []any) error {
	if _, err := t.chosen(v); err != nil {
		return err
	}
	if _, err := v.List(); err != nil {
		return t.undecided(v, err)
	}
	for i, e := range data {
		if i >= len(view) {
			return t.fail(v, "a default adds elements")
		}
		if err := t.given(v.LookupPath(cue.MakePath(cue.Index(i))), e, view[i]); err != nil {
			return err
		}
	}
	return nil
}

// asUntranslated returns an error as what was not translated.
func asUntranslated(err error) *untranslated {
	if u, ok := errors.AsType[*untranslated](err); ok {
		return u
	}
	return untranslatedf("", "%v", err)
}
