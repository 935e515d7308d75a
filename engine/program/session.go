package program

import (
	"slices"

	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// A Session is the immutable input of one evaluation.
type Session struct {
	// CR is the custom resource as the API server returned it.
	CR map[string]any
	// Live holds the observed objects by component and object name. An object
	// that does not exist has no entry.
	Live map[string]map[string]map[string]any
	// Inputs holds what was found of the package's inputs, by their names.
	Inputs map[string]FoundInput
	// Config are the layers of configuration over the package's defaults, the
	// weakest first.
	Config []Layer
}

// Tenant returns who takes turns with others, and makes shapes of sessions: the namespace of the resource, or itself if
// it is in none.
func (s Session) Tenant() string {
	meta, _ := s.CR["metadata"].(map[string]any)
	if namespace := text(meta["namespace"]); namespace != "" {
		return namespace
	}
	return "/" + text(meta["name"])
}

// FoundInput is what was found of one input.
type FoundInput struct {
	// Several is true if the input has a selector.
	Several bool
	// Objects are what was found, by name.
	Objects []map[string]any
}

// withObjects returns the session with other objects in the place of the live ones and of those
// that were found of inputs.
func (s Session) withObjects(live func(component, name string, object map[string]any) map[string]any, input func(object map[string]any) map[string]any) Session {
	out := s
	out.Live = make(map[string]map[string]map[string]any, len(s.Live))
	for component, objects := range s.Live {
		out.Live[component] = make(map[string]map[string]any, len(objects))
		for name, object := range objects {
			out.Live[component][name] = live(component, name, object)
		}
	}
	out.Inputs = make(map[string]FoundInput, len(s.Inputs))
	for name, found := range s.Inputs {
		objects := make([]map[string]any, len(found.Objects))
		for i, object := range found.Objects {
			objects[i] = input(object)
		}
		out.Inputs[name] = FoundInput{Several: found.Several, Objects: objects}
	}
	return out
}

// metadataFields are the fields of metadata that a package may read. The others change with
// every write, such as resourceVersion, or belong to the engine, and would make equal
// evaluations look different.
var metadataFields = []string{
	"name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp",
}

// freeMetadata are the fields in which a package sees only the keys that it refers to.
var freeMetadata = []string{"labels", "annotations"}

// resource returns the projection of a custom resource: its spec, what identifies it, and of its labels and
// annotations what the package reads. Everybody may add labels, and there may be a great many.
func resource(x *syntax.Index) *projection {
	used := project(x, "cr")
	all := &projection{all: true}
	meta := &projection{fields: map[string]*projection{}}
	for _, name := range metadataFields {
		meta.fields[name] = all
	}
	for _, name := range freeMetadata {
		if part := used.below("metadata", name); part != nil {
			meta.fields[name] = part
		}
	}
	return &projection{fields: map[string]*projection{"apiVersion": all, "kind": all, "spec": all, "metadata": meta}}
}

// enteringResource returns a custom resource as it enters a view.
func enteringResource(cr map[string]any) map[string]any { return withoutTracking(withSpec(cr)) }

// withSpec returns a custom resource that has a spec and metadata. One without a spec is one with an empty spec:
// the defaults of the schema apply.
func withSpec(cr map[string]any) map[string]any {
	if cr["spec"] == nil {
		cr = with(cr, "spec", map[string]any{})
	}
	if _, has := cr["metadata"].(map[string]any); !has {
		cr = with(cr, "metadata", map[string]any{})
	}
	return cr
}

// normalizeNumbers returns data with 3.0 as 3. Data without floats, as client-go reads it, is returned unchanged.
func normalizeNumbers(v any) any {
	if !hasFloat(v) {
		return v
	}
	switch v := v.(type) {
	case float64:
		if n, ok := template.Integer(v); ok {
			return n
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = normalizeNumbers(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = normalizeNumbers(e)
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
