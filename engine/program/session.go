package program

// A Session is the immutable input of one evaluation.
type Session struct {
	// CR is the custom resource as the API server returned it.
	CR map[string]any
	// Live holds the observed objects by component and object name. An object
	// that does not exist has no entry.
	Live map[string]map[string]map[string]any
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
	return out
}

// liveValue returns the live objects without managedFields: each of their keys
// would stay in CUE's process-wide table of labels for good.
func liveValue(live map[string]map[string]map[string]any) map[string]any {
	out := make(map[string]any, len(live))
	for component, objects := range live {
		seen := make(map[string]any, len(objects))
		for name, object := range objects {
			seen[name] = withoutManagedFields(object)
		}
		out[component] = seen
	}
	return out
}

func withoutManagedFields(object map[string]any) map[string]any {
	meta, ok := object["metadata"].(map[string]any)
	if !ok || meta["managedFields"] == nil {
		return object
	}
	out := make(map[string]any, len(object))
	for k, v := range object {
		out[k] = v
	}
	slim := make(map[string]any, len(meta))
	for k, v := range meta {
		if k != "managedFields" {
			slim[k] = v
		}
	}
	out["metadata"] = slim
	return out
}
