package program

import (
	"maps"
	"math"
	"slices"
)

// A Session is the immutable input of one evaluation.
type Session struct {
	// CR is the custom resource as the API server returned it.
	CR map[string]any
	// Live holds the observed objects by component and object name. An object
	// that does not exist has no entry.
	Live map[string]map[string]map[string]any
	// Inputs holds what was found of the package's inputs, by their names.
	Inputs map[string]Found
	// Config are the layers of configuration over the package's defaults, the
	// weakest first.
	Config []Layer
}

// Found is what was found of one input.
type Found struct {
	// Several says that the input has a selector.
	Several bool
	// Objects are what was found, by name.
	Objects []map[string]any
}

// metadataFields are the fields of metadata that a package may read. The others
// either change with every write (resourceVersion, managedFields) or are the
// engine's business, and would make equal evaluations look different.
var metadataFields = []string{
	"name", "namespace", "uid", "generation", "labels", "annotations", "creationTimestamp", "deletionTimestamp",
}

// crValue returns the part of a custom resource that the package sees.
func crValue(cr map[string]any) map[string]any {
	out := map[string]any{}
	for _, k := range []string{"apiVersion", "kind", "spec"} {
		if v, ok := cr[k]; ok {
			out[k] = v
		}
	}
	// A CR without a spec is one with an empty spec: the schema's defaults apply.
	if out["spec"] == nil {
		out["spec"] = map[string]any{}
	}
	meta, _ := cr["metadata"].(map[string]any)
	seen := map[string]any{}
	for _, k := range metadataFields {
		if v, ok := meta[k]; ok {
			seen[k] = v
		}
	}
	out["metadata"] = seen
	for k, v := range out {
		out[k] = integral(v)
	}
	return out
}

// integral returns data with 3.0 as 3: to JSON they are the same number, but CUE
// tells an int from a float, and what has passed through encoding/json is all
// floats. Data without floats, as client-go reads it, is returned as it is.
func integral(v any) any {
	if !hasFloat(v) {
		return v
	}
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = integral(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = integral(e)
		}
		return out
	}
	return v
}

func hasFloat(v any) bool {
	switch v := v.(type) {
	case float64:
		return true
	case []any:
		return slices.ContainsFunc(v, hasFloat)
	case map[string]any:
		for _, e := range v {
			if hasFloat(e) {
				return true
			}
		}
	}
	return false
}

// A projection is the part of some data that a package refers to: all of it, or
// the fields of which there is a projection.
//
// Most of a live object is of no interest to a package. What it does not refer to
// does not enter CUE: it would cost time, its keys would stay in CUE's
// process-wide table of labels for good, and, if it changed, equal evaluations
// would look different.
type projection struct {
	all    bool
	fields map[string]*projection
}

// projectionOf returns the part below a root that references lead to.
func projectionOf(root string, references []Reference) *projection {
	out := &projection{}
	for _, r := range references {
		if r.Path[0] == root {
			out.add(r.Path[1:])
		}
	}
	return out
}

func (p *projection) add(path []string) {
	if len(path) == 0 {
		p.all = true
		return
	}
	if p.fields == nil {
		p.fields = map[string]*projection{}
	}
	if p.fields[path[0]] == nil {
		p.fields[path[0]] = &projection{}
	}
	p.fields[path[0]].add(path[1:])
}

// field returns the projection of a field, or nil when it is of no interest.
func (p *projection) field(name string) *projection {
	if p.all {
		return p
	}
	return p.fields[name]
}

// live returns what a package sees of the live objects.
func (p *projection) live(live map[string]map[string]map[string]any) map[string]any {
	out := make(map[string]any, len(live))
	for component, objects := range live {
		ofComponent := p.field(component)
		if ofComponent == nil {
			continue
		}
		seen := make(map[string]any, len(objects))
		for name, object := range objects {
			if ofObject := ofComponent.field(name); ofObject != nil {
				seen[name] = ofObject.of(withoutManagedFields(object))
			}
		}
		out[component] = seen
	}
	return out
}

// of returns the part of a value that is of interest.
func (p *projection) of(v any) any {
	m, ok := v.(map[string]any)
	if !ok || p.all {
		return integral(v)
	}
	out := make(map[string]any, len(p.fields))
	for name, field := range p.fields {
		if inner, ok := m[name]; ok {
			out[name] = field.of(inner)
		}
	}
	return out
}

// withoutManagedFields returns an object without what no package may depend on: the
// managed fields, which change with every write and of which each key is new, and the key
// of a Secret's digests.
func withoutManagedFields(object map[string]any) map[string]any {
	meta, ok := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	salted := annotations[SaltAnnotation] != nil
	if !ok || meta["managedFields"] == nil && !salted {
		return object
	}
	slim := maps.Clone(meta)
	delete(slim, "managedFields")
	if salted {
		annotations = maps.Clone(annotations)
		delete(annotations, SaltAnnotation)
		slim["annotations"] = annotations
	}
	return with(object, "metadata", slim)
}
