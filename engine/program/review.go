package program

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// Admission is what a package says in general about requests.
type Admission struct {
	// FailsClosed says that a request is refused while nobody answers whether it is valid.
	FailsClosed bool
}

// A Review is what a package says of a request that creates or changes a custom resource. It is plain
// data, so that it can cross a process boundary.
type Review struct {
	// Rollout is what Evaluate returns.
	Rollout Rollout
	// Warnings are for the user of the request, by their names in the package.
	Warnings []string
	// Spec is the spec with every default of the package, and Labels are those that the package computes.
	// Both are nil if the custom resource is invalid.
	Spec   map[string]any
	Labels map[string]string
}

const (
	// maxWarnings is how many warnings a request gets, and maxWarning how many bytes of each: the API server
	// drops what is beyond 4096 bytes in total.
	maxWarnings = 16
	maxWarning  = 256
	// maxLabels is how many labels a package computes.
	maxLabels = 64
)

// Review returns what a package says of a custom resource as a user would like to have it. It errors as
// Evaluate does.
func (p *Program) Review(s Session) (out Review, err error) {
	evaluated, err := p.Evaluate(s)
	if err != nil || len(evaluated.Invalid)+len(evaluated.Misconfigured) > 0 {
		return Review{Rollout: evaluated}, err
	}
	out.Rollout = evaluated
	defer p.recovered(&out.Rollout, &err)
	s = p.views.digested(s)
	root := p.compiled.fill(p.views.filling(s))
	out.Spec = specWithDefaults(root)
	out.Labels = labelsOf(root)
	out.Warnings = p.secrets.warningsOf(root)
	if blind, has := p.secrets.blind(s, evaluated); has && len(out.Warnings) > 0 {
		// What depends on a Secret is not said to those who may only write the resource.
		others := p.secrets.warningsOf(p.compiled.fill(p.views.filling(blind)))
		out.Warnings = slices.DeleteFunc(out.Warnings, func(text string) bool { return !slices.Contains(others, text) })
	}
	return out, nil
}

// specWithDefaults returns the spec of an evaluated custom resource, or nil if it is not data.
func specWithDefaults(root cue.Value) map[string]any {
	spec, err := data(Lookup(root, "cr", "spec"))
	if err != nil {
		return nil
	}
	out, _ := spec.(map[string]any)
	return out
}

// labelsOf returns the labels that an evaluated package computes. An incomplete one is left out.
func labelsOf(root cue.Value) map[string]string {
	out := map[string]string{}
	for key, v := range fields(Lookup(root, "admission", "labels")) {
		if text, err := v.String(); err == nil && len(out) < maxLabels {
			out[key] = text
		}
	}
	return out
}

// warningsOf returns the warnings of an evaluated package, by their names. An incomplete one is left out,
// and so is one that quotes what the package keeps in a Secret.
func (s *Secrets) warningsOf(root cue.Value) []string {
	texts := map[string]string{}
	for name, v := range fields(Lookup(root, "admission", "warnings")) {
		if text, err := v.String(); err == nil && text != "" && !s.reveals(text) {
			texts[name] = strings.ToValidUTF8(text[:min(len(text), maxWarning)], "")
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if len(out) < maxWarnings {
			out = append(out, texts[name])
		}
	}
	return out
}

// reveals reports whether a text has something that the package keeps in a Secret.
func (s *Secrets) reveals(text string) bool {
	return quotes(text, s.literals) || slices.ContainsFunc(s.literals, func(literal string) bool {
		return len(literal) >= shortest && strings.Contains(text, literal)
	})
}

// Admission returns what the package says in general about requests.
func (p *Program) Admission() Admission { return p.admission }

// readAdmission reads what the package says in general about requests.
func readAdmission(static cue.Value, index *syntax.Index) (out Admission, faults fault.Faults) {
	policy, err := Lookup(static, "admission", "failurePolicy").String()
	if err != nil && cue.IsIncomplete(err) { // CUE reports all other errors
		faults = fault.Faults{{
			Position: index.PositionOf("admission"), Path: "admission.failurePolicy",
			Message: "the policy is written out: the API server applies it while no operator answers",
		}}
	}
	return Admission{FailsClosed: policy == "Fail"}, faults
}
