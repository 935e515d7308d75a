package diff

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/redact"
)

// A ChangedPath is the path of a field that differs, without its values.
type ChangedPath struct {
	// Text is the path to show. The keys of what a Secret holds are masked.
	Text string
	// Parts lead to the field in the later state, unless it is gone there.
	Parts []fieldpath.Part
}

// Paths returns the paths of the fields that differ between two states of an object, in order: also those of the status,
// and of the metadata that people and controllers write.
func Paths(before, after *unstructured.Unstructured) []ChangedPath {
	found := &changedPaths{secret: mayBeSecret(before) || mayBeSecret(after)}
	c := &comparison{found: found}
	c.compare(nil, without(before, bookkeeping...), without(after, bookkeeping...))
	return found.paths
}

// bookkeeping is the metadata that every write changes, or that none can.
var bookkeeping = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink", "name", "namespace"}

// changedPaths are the differences without their values.
type changedPaths struct {
	secret bool
	paths  []ChangedPath
}

// add implements finder.
func (c *changedPaths) add(at path, _, _ any) {
	shown := at
	if c.secret && len(at) > 1 && (at.begins("data") || at.begins("stringData")) {
		shown = at[:1].field(mask)
	}
	c.paths = append(c.paths, ChangedPath{redact.Printable(shown.String()), at.parts()})
}

// reordered implements finder.
func (c *changedPaths) reordered(at path) { c.add(at, nil, nil) }
