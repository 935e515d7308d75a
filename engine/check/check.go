package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/render"
	"operetta.dev/engine/vet"
)

// DefaultBound is how many cases are tried unless somebody asks for more.
const DefaultBound = 64

// maxCounterexamples bounds how many findings are made small and reported.
const maxCounterexamples = 20

// Options say how much is checked.
type Options struct {
	// Bound is how many cases are tried at most; 0 stands for DefaultBound.
	Bound int
	// Scopes are the scopes of kinds whose definitions were given.
	Scopes vet.Scopes
	// Known are the faults that were found without resources. They are not found again.
	Known fault.Faults
	// Progress is called with how many of all cases are done, if it is not nil.
	Progress func(done, all int)
	// Shrinking is called with how many of all findings are made small, if it is not nil.
	Shrinking func(done, all int)
	// Found is called with each finding as it is found, before its resource is made small, if it is not nil: a later
	// case may end the process.
	Found func(Counterexample)
	// Enough says that the time is up: no more cases are tried, and no more resources made small. It may be nil.
	Enough func() bool
}

// enough reports whether the time is up.
func (o Options) enough() bool { return o.Enough != nil && o.Enough() }

// A Report is what a check has found, and how much it has tried. It can cross a process boundary.
type Report struct {
	// Cases are the resources that were tried, and Refused those of them that the schema does not accept.
	Cases   int `json:"cases"`
	Refused int `json:"refused,omitempty"`
	// Branches are the fields of the spec, and of the objects of inputs, with several choices.
	Branches int `json:"branches"`
	// Choices are all choices of all branches, and Chosen those that were in a case.
	Choices int `json:"choices"`
	Chosen  int `json:"chosen"`
	// Pairs are all pairs of choices of two branches, and Paired those that were in a case.
	Pairs  int `json:"pairs"`
	Paired int `json:"paired"`
	// Parts are what there is too much of for all of it to be tried.
	Parts []Truncation `json:"parts,omitempty"`
	// Ready are the cases that became ready.
	Ready int `json:"ready"`
	// Undecided are the cases that did not, or that were rejected, for a reason that may be that something is
	// made up here.
	Undecided int `json:"undecided,omitempty"`
	// Rejected says why the objects of a case were refused, if that may be because something is made up, and no case became
	// ready.
	Rejected *fault.Fault `json:"rejected,omitempty"`
	// Untried are the cases for which there was no time.
	Untried int `json:"untried,omitempty"`
	// Unmade says why there are no cases, or is "".
	Unmade          string           `json:"unmade,omitempty"`
	Counterexamples []Counterexample `json:"counterexamples,omitempty"`
	// Unready are the predicates that are false for good with one value that the schema lists, and true for other resources.
	// That may be meant, as with a switch that pauses something.
	Unready []Counterexample `json:"unready,omitempty"`
	// Reached are the known faults, each with the smallest resource that leads to it.
	Reached []Counterexample `json:"reached,omitempty"`
}

// A Counterexample is a fault and a resource that shows it.
type Counterexample struct {
	Fault fault.Fault `json:"fault"`
	// Resource is the smallest resource found that shows it; there may have been no time to look for a smaller one.
	Resource map[string]any `json:"resource"`
	// Live are the objects in the cluster with which it shows, as few and as small as were found. There are none if it
	// shows at once.
	Live []map[string]any `json:"live,omitempty"`
}

// String returns the report in one line.
func (r Report) String() string {
	if r.Unmade != "" {
		return "not checked with resources: " + r.Unmade
	}
	text := fmt.Sprintf("%s, %d of %d choices of %s, %d of %d pairs; %d became ready", counted(r.Cases-r.Refused, "resource"), r.Chosen, r.Choices, counted(r.Branches, "branch"), r.Paired, r.Pairs, r.Ready)
	if r.Undecided > 0 {
		depend := "depend"
		if r.Undecided == 1 {
			depend = "depends"
		}
		text += fmt.Sprintf(", and %d %s on what only a cluster knows", r.Undecided, depend)
	}
	if r.Untried > 0 {
		text += fmt.Sprintf("; there was no time for %d more", r.Untried)
	}
	return text
}

// Run checks a package. It errors if the context ends.
func Run(ctx context.Context, p *program.Program, o Options) (Report, error) {
	if o.Bound == 0 {
		o.Bound = DefaultBound
	}
	c, unmade := newChecker(p, o)
	if unmade != "" {
		return Report{Unmade: unmade}, nil
	}
	cover := newCover(c.branches, c.placesOf())
	if cover.inPairs < len(c.branches) {
		c.report.Parts = append(c.report.Parts, Truncation{Path: "pairs", Unit: "branches", Tried: cover.inPairs, Of: len(c.branches)})
	}
	selections := cases(cover, o.Bound)
	for i, s := range selections {
		if i > 0 && o.enough() {
			c.report.Untried = len(selections) - i
			break
		}
		if err := c.add(ctx, s); err != nil {
			return Report{}, err
		}
		if o.Progress != nil {
			o.Progress(i+1, len(selections))
		}
	}
	selections = selections[:c.report.Cases]
	c.report.count(cover, selections)
	if err := c.rare(ctx); err != nil {
		return Report{}, err
	}
	if err := c.ineffective(ctx, selections); err != nil {
		return Report{}, err
	}
	if err := c.hidden(ctx); err != nil {
		return Report{}, err
	}
	if err := c.reached(ctx); err != nil {
		return Report{}, err
	}
	return c.finish(ctx)
}

// count counts the choices and pairs that there are, and those that are in a selection.
func (r *Report) count(c *cover, selections []selection) {
	c.ticked, c.chosen, c.paired = map[pair]bool{}, 0, 0 // there may have been no time for all that were planned
	for _, s := range selections {
		c.markCovered(s)
	}
	r.Branches, r.Choices, r.Chosen, r.Pairs, r.Paired = len(c.branches), c.choices, c.chosen, c.pairs, c.paired
}

// A checker checks one package.
type checker struct {
	program *program.Program
	// evaluator evaluates the program.
	evaluator *evaluator
	server    *conform.Server
	options   Options
	*maker

	report Report
	// found are the problems that were found, by key, in order.
	found []found
	known map[string]bool
	// held are the predicates that were true in some case, by path.
	held map[string]bool
	// complete are the complete types of Kubernetes, once they were needed.
	complete *program.Kinds
	// changes are the choices of cases that were changed to the simplest one and back, by branch.
	changes map[[2]int]bool
	// defaulted are the fields of inputs for whose absence the package provides.
	defaulted []syntax.DefaultedField
	// causes are the values of inputs without which a problem does not show, by its key.
	causes map[string]*sample
	// textSamples are those of texts in inputs, by the path of the field.
	textSamples map[string]*sample
	// sampled is how many cases were tried again with other values of inputs.
	sampled int
	// settled are the cases that became ready, as they were evaluated in the end.
	settled []readyCase
	// ended are the cases that the schema accepts, as they were evaluated in the end, if faults are known.
	ended []readyCase
}

// found is a problem and the first selection that showed it.
type found struct {
	problem

	selection selection
}

// newChecker returns a checker, or says why no resource can be made up.
func newChecker(p *program.Program, o Options) (c *checker, unmade string) {
	definition, err := CRDOf(p)
	if faults, are := errors.AsType[fault.Faults](err); are {
		if o.knows(faults[0]) {
			return nil, "no resource can be made up of a schema with these faults"
		}
		return nil, faults[0].Error()
	}
	if err != nil {
		return nil, err.Error()
	}
	version := definition.Spec.Versions[0]
	server, err := conform.NewServer(definition, version.Name)
	if err != nil {
		return nil, err.Error()
	}
	s := &splitter{compared: comparedOf(p), counted: countedOf(p), samples: map[string]*sample{}, rare: map[string][]choice{}, bound: cmp.Or(o.Bound, DefaultBound)}
	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	n := s.node(&spec, "spec", false, 0)
	if n == nil {
		return nil, "no value can be made up for a required field of the spec"
	}
	c = &checker{program: p, evaluator: &evaluator{CachingProgram: dryrun.NewCachingProgram(p)}, server: server, options: o, known: map[string]bool{}, held: map[string]bool{}, changes: map[[2]int]bool{}, causes: map[string]*sample{}, defaulted: p.Syntax().Examples().Defaulted()}
	inputs := s.inputs(p, c.kinds)
	c.maker = newMaker(p, n, s.branches)
	c.maker.inputs, c.textSamples, c.report.Parts = inputs, s.samples, s.parts
	if _, err := c.server.Admit(c.make(make(selection, len(s.branches))).resource, nil); err != nil {
		return nil, "the simplest resource that could be made up does not satisfy the schema: " + err.Error()
	}
	return c, ""
}

// CRDOf returns the definition of the version that a package reads, without what only kubectl shows. It errors with
// Faults if a CustomResourceDefinition cannot express the schema.
func CRDOf(p *program.Program) (*apiextensionsv1.CustomResourceDefinition, error) {
	return definitionOf(p, p.GroupVersionKind().Version)
}

// definitionOf is CRDOf for any version, as if that were the only one.
func definitionOf(p *program.Program, version string) (*apiextensionsv1.CustomResourceDefinition, error) {
	m := p.Meta()
	d := crd.CustomResource{Package: p.Name(), Group: m.Group, Kind: m.Kind, Plural: m.Plural, Singular: m.Singular, Scope: apiextensionsv1.NamespaceScoped}
	if m.ClusterScoped {
		d.Scope = apiextensionsv1.ClusterScoped
	}
	for _, v := range m.Versions {
		if v.Name == version {
			d.Versions = []crd.Version{{Name: v.Name, Spec: v.Spec, Served: true, Storage: true}}
		}
	}
	return crd.Generate(d)
}

// comparedOf returns the literals that a package compares fields of the spec with, by path.
func comparedOf(p *program.Program) map[string][]any {
	out := map[string][]any{}
	for _, c := range p.Syntax().Examples().Compared() {
		path := strings.Join(c.Path[1:], ".")
		out[path] = append(out[path], c.Value)
	}
	return out
}

// countedOf returns the numbers of elements that a package names, by the path of the list or map in the spec.
func countedOf(p *program.Program) map[string][]int {
	out := map[string][]int{}
	for _, c := range p.Syntax().Examples().Counted() {
		path := strings.Join(c.Path[1:], ".")
		out[path] = append(out[path], c.Counts...)
	}
	return out
}

// add tries a case, and notes what is new in it.
func (c *checker) add(ctx context.Context, s selection) error {
	out, err := c.try(ctx, s, false)
	if err != nil {
		return err
	}
	out.problems = slices.DeleteFunc(out.problems, func(p problem) bool {
		known := c.options.knows(p.fault)
		out.known = out.known || known
		return known
	})
	if out, err = c.withOtherValues(ctx, s, out); err != nil {
		return err
	}
	c.report.Cases++
	switch {
	case out.refused:
		c.report.Refused++
	case out.ready:
		c.report.Ready++
		c.settled = append(c.settled, readyCase{s, out.settled, out.given, out.keyed})
	case len(out.problems) == 0 && !out.known:
		c.report.Undecided++
		if c.report.Rejected == nil {
			c.report.Rejected = out.rejected
		}
	}
	if len(c.options.Known) > 0 && !out.refused {
		c.ended = append(c.ended, readyCase{s, out.settled, out.given, out.keyed})
	}
	for _, path := range out.held {
		c.held[path] = true
	}
	for _, p := range out.problems {
		c.note(p, s)
	}
	return nil
}

// note notes a problem of a case, if it is new.
func (c *checker) note(p problem, s selection) {
	if !c.known[p.key()] {
		c.known[p.key()] = true
		c.found = append(c.found, found{p, s})
		c.tell(found{p, s})
	}
}

// tell tells a finding, unless another case may show that it is none, or there are too many.
func (c *checker) tell(f found) {
	if c.options.Found != nil && f.predicate == "" && len(c.found) <= maxCounterexamples {
		c.options.Found(c.example(f.selection, f.problem))
	}
}

// example returns a finding with the resource of a selection, as it is.
func (c *checker) example(s selection, p problem) Counterexample {
	return Counterexample{Fault: c.shown(p.fault), Resource: c.make(s).resource, Live: p.live}
}

// finish makes what was found small, and returns the report.
func (c *checker) finish(ctx context.Context) (Report, error) {
	c.found = slices.DeleteFunc(c.found, func(f found) bool { return c.options.knows(f.fault) })
	for i, f := range c.found {
		if c.options.Shrinking != nil {
			c.options.Shrinking(i, len(c.found))
		}
		if f.predicate != "" && c.held[f.predicate] { // with other values it is true
			if err := c.unready(ctx, f); err != nil {
				return Report{}, err
			}
			continue
		}
		if f.isSmall && len(c.report.Counterexamples) < maxCounterexamples {
			small := c.example(f.selection, f.problem)
			small.Live = c.smallestLive(ctx, small.Resource, f.problem)
			c.report.Counterexamples = append(c.report.Counterexamples, small)
			continue
		}
		if len(c.report.Counterexamples) == maxCounterexamples {
			break
		}
		small, err := c.shrink(ctx, f)
		if err != nil {
			return Report{}, err
		}
		c.report.Counterexamples = append(c.report.Counterexamples, small)
	}
	if c.report.Ready > 0 {
		c.report.Rejected = nil
	}
	return c.report, nil
}

// shrink returns the finding with the smallest resource that still shows it: as many branches as possible have
// their simplest choice, and the others the simplest that shows it. It ends early when the time is up.
func (c *checker) shrink(ctx context.Context, f found) (Counterexample, error) {
	p := f.problem
	s, over, err := c.smallest(f.selection, func(simpler selection) (bool, error) {
		out, err := c.try(ctx, simpler, true)
		at := out.index(p.key())
		if err == nil && at >= 0 {
			p = out.problems[at]
		}
		return at >= 0, err
	})
	if err != nil {
		return Counterexample{}, err
	}
	if over {
		return c.example(s, p), nil
	}
	resource := c.showing(ctx, c.make(s).resource, p)
	return Counterexample{Fault: c.shown(p.fault), Resource: resource, Live: c.smallestLive(ctx, resource, p)}, nil
}

// showing returns the resource as a person writes it, or with the defaults of the API server if render shows the
// fault only then: CUE takes a list that is left out for one that may still get elements.
func (c *checker) showing(ctx context.Context, resource map[string]any, p problem) map[string]any {
	admitted, err := c.server.Admit(resource, nil)
	if err != nil || !p.early {
		return resource
	}
	faults := func(of map[string]any) int {
		out, err := render.Render(ctx, c.program, render.Input{CR: of, Manifests: p.live})
		if err != nil {
			return 0
		}
		return len(out.Faults)
	}
	if faults(resource) == 0 && faults(admitted) > 0 {
		return admitted
	}
	return resource
}

// smallest returns the simplest selection that still shows something, and whether the time was over before it was found.
func (c *checker) smallest(from selection, shows func(selection) (bool, error)) (s selection, over bool, err error) {
	s, err = simplified(from, func(simpler selection) (bool, error) {
		if over = over || c.options.enough(); over {
			return false, nil
		}
		return shows(simpler)
	})
	for i := range s {
		for choice := range s[i] {
			if over = over || err == nil && c.options.enough(); over || err != nil {
				return s, over, err
			}
			smaller := slices.Clone(s)
			smaller[i] = choice
			var is bool
			if is, err = shows(smaller); is {
				s = smaller
				break
			}
		}
	}
	return s, over, err
}
