package render

import (
	"cmp"
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// DefaultNamespace is the namespace of a custom resource that names none.
const DefaultNamespace = "default"

// Input is what Render knows besides the package.
type Input struct {
	// CR is the custom resource. It is not changed.
	CR map[string]any
	// Namespace is that of a namespaced custom resource that names none; "" stands for
	// DefaultNamespace.
	Namespace string
	// Live holds observed objects by component and object name.
	Live map[string]map[string]map[string]any
	// Manifests are observed objects, which are matched with rendered objects and inputs by their
	// identity, and CustomResourceDefinitions.
	Manifests []map[string]any
	// Config is the configuration of the operator, or nil.
	Config map[string]any
}

// Output is what a reconcile would do about an Input.
type Output struct {
	// CR is the custom resource as it was evaluated, in its namespace.
	CR map[string]any
	// Invalid are the faults of the custom resource. If there are any, nothing else is set but CR and Phase.
	Invalid fault.Faults
	// Components are all components, dependencies first, and then the hooks whose phase has
	// come. There are none if the resource or the package is invalid as a whole.
	Components []rollout.ComponentPreview
	// Hooks run at the phases of a rollout. They are no part of Objects.
	Hooks []program.Hook
	// Faults are the faults of the package that this custom resource shows, in the order of the
	// components.
	Faults fault.Faults
	// Refused is what contradicts the types of Kubernetes in objects whose turn has not come. Only Render finds it.
	Refused fault.Faults
	// Unmet are the false and unknown predicates of components that also have a broken one: the
	// status names only the broken one.
	Unmet []string
	// Absent are the inputs that were not found, with their identity.
	Absent []string
	// Unmatched are the live objects that are neither rendered objects nor inputs.
	Unmatched []string
	// Status are the author's status fields that could be evaluated.
	Status map[string]any
	// Phase is that of a status with these components. It is also set if the resource is invalid.
	Phase status.Phase
	// Redactor knows the Secrets that were read, for whatever else the caller prints.
	Redactor *redact.Redactor
	// Evaluated is what the package was evaluated with last, and Rollout what that came to.
	Evaluated program.Session
	Rollout   program.Rollout
}

// Object is a rendered object and the component that it belongs to.
type Object struct {
	Component string
	program.Object
}

// Path returns the path of the object in its package, such as components.web.objects.service.
func (o Object) Path() string { return "components." + o.Component + ".objects." + o.Name }

// Objects returns the objects of the components that are applied or wait for it, dependencies
// first, without the marks of the engine.
func (o Output) Objects() []Object {
	hooks := map[string]bool{}
	for _, h := range o.Hooks {
		hooks[h.Component.Name] = true
	}
	var out []Object
	for _, c := range o.Components {
		if hooks[c.Name] || !applies(c) {
			continue
		}
		for _, d := range c.Objects {
			for _, object := range c.Source.Objects {
				if object.Name == d.Object {
					object.Manifest = inNamespace(object.Manifest, d.Manifest.GetNamespace())
					out = append(out, Object{c.Name, object})
				}
			}
		}
	}
	return out
}

// applies reports whether a component is applied or waits for it.
func applies(c rollout.ComponentPreview) bool {
	switch c.State {
	case status.Failed:
		return c.Reason == status.ReasonObjectFailed // it was applied, and did not become healthy
	case status.Held, status.Excluded, status.Deleting:
		return false
	case status.Verified, status.Applied, status.Waiting, status.Retrying:
	}
	return true
}

// inNamespace returns a manifest with the namespace of its object.
func inNamespace(manifest map[string]any, namespace string) map[string]any {
	out, meta := maps.Clone(manifest), maps.Clone(metadataOf(manifest))
	if delete(meta, "namespace"); namespace != "" {
		meta["namespace"] = namespace
	}
	out["metadata"] = meta
	return out
}

// Render decides about one custom resource as a reconcile would. Faults of the resource and of the
// package are in the Output; it errors only if there is no preview.
func Render(ctx context.Context, p *program.Program, in Input) (Output, error) {
	s, d, err := open(ctx, p, in)
	if err != nil {
		return Output{}, err
	}
	out := s.view.output(d)
	out.Refused, err = s.view.refused(d)
	return out, err
}

// output returns the last preview.
func (v *view) output(d reconcile.Preview) Output {
	out := Output{CR: v.cr.Object, Redactor: d.Redactor, Evaluated: v.evaluates.last, Rollout: d.Rollout, Phase: phaseOf(d, v.cr)}
	if invalid := d.Rollout.Invalid; len(invalid) > 0 {
		out.Invalid = redacted(d, invalid)
		return out
	}
	out.Components, out.Hooks, out.Status = d.Components, d.Rollout.Hooks, d.Rollout.Status
	if len(out.Components) == 0 {
		out.Components = undecided(d.Rollout.Components) // to be drawn
	}
	out.Faults = Faults(d)
	out.Unmet, out.Absent, out.Unmatched = unmet(d), v.absent(d), v.unmatched(d)
	for _, texts := range [][]string{out.Unmet, out.Absent, out.Unmatched} {
		for i, t := range texts {
			texts[i] = d.Redactor.Text(t)
		}
	}
	return out
}

// phaseOf returns the phase that a reconcile would write with what a preview says.
func phaseOf(d reconcile.Preview, cr *unstructured.Unstructured) status.Phase {
	completion := status.Completion{Fault: d.Fault, Change: d.Change}
	for _, c := range d.Components {
		completion.Components = append(completion.Components, c.Component)
	}
	before, _, _ := unstructured.NestedMap(cr.Object, "status")
	return status.PhaseOf(status.Build(status.Input{Completion: completion, Before: before}))
}

// unmet returns the false and unknown predicates of components that also have a broken one.
func unmet(d reconcile.Preview) []string {
	var out []string
	for _, c := range d.Components {
		for _, p := range c.Source.Verify {
			if c.Reason == status.ReasonPredicateBroken && (p.Verdict == program.False || p.Verdict == program.Unknown) {
				out = append(out, c.Name+": waits for verify."+p.Name+": "+p.Explain())
			}
		}
	}
	return out
}

// Faults returns the faults of the package that a preview shows, in the order of the components, without the
// values of Secrets.
func Faults(d reconcile.Preview) fault.Faults { return redacted(d, once(faultsOf(d))) }

// faultsOf returns the faults of the package, or of the resource as the package sees it.
func faultsOf(d reconcile.Preview) fault.Faults {
	faults := d.Rollout.Misconfigured
	for _, c := range d.Components {
		faults = append(faults, componentFaults(c)...)
	}
	for _, h := range d.Rollout.Hooks {
		faults = append(faults, h.Component.Faults...)
	}
	faults = append(faults, d.Rollout.StatusFaults...)
	if len(faults) == 0 && !d.Fault.IsZero() {
		faults = append(faults, fault.Fault{Position: d.FaultAt, Message: d.Fault.Message})
	}
	return faults
}

// componentFaults returns the faults of one component. A predicate that can never be decided is a
// fault even before it is its turn.
func componentFaults(c rollout.ComponentPreview) fault.Faults {
	c.Component = c.WithoutTimeout() // that a cluster needs too long is no fault of a package
	if c.State == status.Excluded {
		return nil
	}
	var faults fault.Faults
	switch {
	case c.Reason == status.ReasonInvalidObject && len(c.Source.Faults) > 0:
		faults = append(faults, c.Source.Faults...)
	case c.Reason == status.ReasonPredicateBroken && c.Source.When.Verdict == program.Broken:
		faults = append(faults, fault.Fault{Path: "components." + c.Name + ".when", Message: c.Source.When.Detail})
	case c.Reason == status.ReasonPredicateBroken:
	case c.Reason == status.ReasonObjectFailed: // a fault of the cluster, not of the package
	case c.State == status.Failed, c.Reason == status.ReasonKindNotServed:
		faults = append(faults, fault.Fault{Path: "components." + c.Name, Message: c.Message})
	}
	for _, e := range c.Source.Edges {
		if e.Check != nil {
			faults = append(faults, broken("components."+c.Name+".dependsOn."+e.To+".", *e.Check)...)
		}
	}
	faults = append(faults, broken("components."+c.Name+".requires.", c.Source.Requires...)...)
	faults = append(faults, broken("components."+c.Name+".verify.", c.Source.Verify...)...)
	return append(faults, broken("components."+c.Name+".failed.", c.Source.Failed...)...)
}

// broken returns a fault for each predicate that can never be decided.
func broken(prefix string, predicates ...program.Predicate) fault.Faults {
	var faults fault.Faults
	for _, p := range predicates {
		if p.Verdict == program.Broken {
			faults = append(faults, fault.Fault{Position: p.Position, Path: prefix + p.Name, Message: p.Source + " can never be decided: " + p.Detail})
		}
	}
	return faults
}

// once returns the first fault of each field: a broken predicate, for example, is a fault by itself
// and also makes its component invalid.
func once(faults fault.Faults) fault.Faults {
	type place struct {
		fault.Position
		path string
	}
	seen := map[place]bool{}
	var out fault.Faults
	for _, f := range faults {
		at := place{f.Position, f.Path}
		if seen[at] {
			continue
		}
		seen[at] = true
		out = append(out, f)
	}
	return out
}

// redacted returns faults without the values of Secrets. The rendered objects are not redacted,
// because the user asked for them.
func redacted(d reconcile.Preview, faults fault.Faults) fault.Faults {
	for i, f := range faults {
		faults[i].Path, faults[i].Message, faults[i].Hint = d.Redactor.Text(f.Path), d.Redactor.Text(f.Message), d.Redactor.Text(f.Hint)
	}
	return faults
}

// resourceIn returns the custom resource in its namespace, or in none if it is cluster-scoped, as
// the API server would return it.
func resourceIn(p *program.Program, in Input) *unstructured.Unstructured {
	meta := maps.Clone(metadataOf(in.CR))
	if meta == nil {
		meta = map[string]any{}
	}
	switch namespace, _ := meta["namespace"].(string); {
	case p.Meta().ClusterScoped:
		delete(meta, "namespace")
	case namespace == "":
		meta["namespace"] = cmp.Or(in.Namespace, DefaultNamespace)
	}
	cr := maps.Clone(in.CR)
	cr["metadata"] = meta
	return &unstructured.Unstructured{Object: cr}
}

func metadataOf(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return meta
}
