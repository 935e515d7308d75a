// Package readiness has what ready means for each kind, as cases: live objects with the
// verdict on them. They are data, so that one table holds everything that judges or
// explains readiness against the same expectation: engine/verify, schemas/health and
// docs/readiness.md.
package readiness

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// A Kind is one kind, or a group of kinds that are judged alike.
type Kind struct {
	// Title is what the page calls it.
	Title string `json:"title"`
	// Order is its place on the page.
	Order int `json:"order"`
	// Ready, Failed and Generation are what the page says: when it is ready, when it has
	// failed for good, if it can, and how a status of an older spec is told.
	Ready      string `json:"ready"`
	Failed     string `json:"failed"`
	Generation string `json:"generation"`
	// Predicate is the definition of schemas/health for it, without the object; it may be
	// empty.
	Predicate string `json:"predicate"`
	// Base is the object that every case changes.
	Base  map[string]any `json:"base"`
	Cases []Case         `json:"cases"`
}

// A Stage is what a case shows of its kind.
type Stage string

// The stages. Each kind has a case of those that it can be in.
const (
	// NotYet: it is not ready, and nobody has done anything wrong.
	NotYet Stage = "not yet"
	// Stale: it was ready with an older spec.
	Stale Stage = "stale"
	// Ready: it is as it should be.
	Ready Stage = "ready"
	// Failed: it will not get there without a change.
	Failed Stage = "failed"
)

// A Case is a live object and the verdict on it.
type Case struct {
	// Name and Reason say what is there, and why the verdict is as it is.
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Stage  Stage  `json:"stage"`
	// Change is merged into the base: null takes a field away.
	Change map[string]any `json:"change"`
	// Message is what the built-in check says; it is empty if the object is ready.
	Message string `json:"message"`
	// Kstatus is what that library says, if it is something else.
	Kstatus Stage `json:"kstatus"`
	// Differs says why schemas/health comes to something else.
	Differs string `json:"differs"`
}

// Live returns the object of a case.
func (k Kind) Live(c Case) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: merged(k.Base, c.Change)}
}

// merged returns a with the fields of b, as a JSON merge patch does it.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for k, v := range b {
		inner, isMap := v.(map[string]any)
		before, _ := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap && before != nil:
			out[k] = merged(before, inner)
		default:
			out[k] = v
		}
	}
	return out
}

//go:embed testdata/*.yaml
var files embed.FS

// Kinds returns all kinds, in the order of the page.
func Kinds() ([]Kind, error) {
	names, err := fs.Glob(files, "testdata/*.yaml")
	if err != nil {
		return nil, err
	}
	out := make([]Kind, len(names))
	for _, name := range names {
		k, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(name), err)
		}
		if k.Order < 1 || k.Order > len(out) || out[k.Order-1].Order != 0 {
			return nil, fmt.Errorf("%s: order %d is not the one place that is left for it", path.Base(name), k.Order)
		}
		out[k.Order-1] = k
	}
	return out, nil
}

func read(name string) (Kind, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return Kind{}, err
	}
	var k Kind
	if err := yaml.UnmarshalStrict(text, &k); err != nil {
		return Kind{}, err
	}
	// Once more, with the integers as integers, which is how client-go reads objects.
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return Kind{}, err
	}
	return k, utiljson.Unmarshal(data, &k)
}
