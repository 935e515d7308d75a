package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// madeKey is the key that maps have, and what the keys behind it begin with. It may be part of any name.
const madeKey = "key"

// longKey is how long the longest key is that is tried: names of objects have 253 characters at most.
const longKey = 300

// oddKeys are keys that most names of Kubernetes cannot have. A schema that accepts them lets users write them.
var oddKeys = []struct{ label, key string }{
	{"a key with a capital letter", "Upper"},
	{"a key with a dot", "a.dot"},
	{"a key with an underscore", "an_underscore"},
	{"a key with a space", "a space"},
	{"a key that begins with a dash", "-dash"},
	{"an empty key", ""},
	{fmt.Sprintf("a key of %d characters", longKey), strings.Repeat("k", longKey)},
}

// rareMaps returns the choices of a map that are tried once: a third key, and odd ones.
func rareMaps(schema *apiextensionsv1.JSONSchemaProps, choices []choice, value *node) []choice {
	if value == nil {
		return nil
	}
	var out []choice
	if lowest := schema.MinProperties; lowest == nil || *lowest <= 1 {
		for _, odd := range oddKeys {
			out = append(out, choice{label: odd.label, entries: []entry{{odd.key, value}}, odd: true})
		}
	}
	if !isAllowed(rareElements, schema.MinProperties, schema.MaxProperties) {
		return out
	}
	return withoutKnown(append(out, mapOf(rareElements, value)), choices)
}

// rareLists returns the choice of a third element, which is tried once.
func rareLists(schema *apiextensionsv1.JSONSchemaProps, choices []choice, element *node) []choice {
	if element == nil || !isAllowed(rareElements, schema.MinItems, schema.MaxItems) {
		return nil
	}
	return withoutKnown([]choice{listOf(rareElements, element)}, choices)
}

// rareElements is how many elements a list or map has once, if the schema does not ask for that number anyway: something may show
// only behind the second one.
const rareElements = 3

func isAllowed(n int, lowest, highest *int64) bool {
	return (lowest == nil || int64(n) >= *lowest) && (highest == nil || int64(n) <= *highest)
}

// withoutKnown returns the choices that are not among others.
func withoutKnown(choices, others []choice) []choice {
	return slices.DeleteFunc(choices, func(c choice) bool {
		return slices.ContainsFunc(others, func(o choice) bool { return o.label == c.label })
	})
}

// rare tries each rare choice once, in the first case that became ready and has something at its place. They are in no pairs, and
// do not count as cases: a schema with many maps would have hundreds.
func (c *checker) rare(ctx context.Context) error {
	for i, b := range c.branches {
		for at, choice := range b.rare {
			if c.options.enough() {
				return nil
			}
			from, ok := c.settledWith(i, choice)
			if !ok {
				continue
			}
			s := slices.Clone(from)
			s[i] = len(b.choices) + at
			found, err := c.addRare(ctx, s)
			if err != nil {
				return err
			}
			if found && choice.odd {
				break // another key says the same
			}
		}
	}
	return nil
}

// addRare tries a selection with a rare choice, and notes what is new in it.
func (c *checker) addRare(ctx context.Context, s selection) (found bool, err error) {
	out, err := c.try(ctx, s, true)
	if err != nil {
		return false, err
	}
	out.problems = slices.DeleteFunc(out.problems, func(p problem) bool { return c.options.knows(p.fault) })
	if out, err = c.withOtherValues(ctx, s, out); err != nil {
		return false, err
	}
	for _, p := range out.problems {
		found = true
		c.note(p, s)
	}
	return found, nil
}

// settledWith returns the first case that became ready in which a list or map has the most elements. For an odd key, a name
// has to contain the usual one.
func (c *checker) settledWith(branch int, rare choice) (selection, bool) {
	var best selection
	most := 0
	for _, r := range c.settled {
		at := r.selection[branch]
		if at >= len(c.branches[branch].choices) || !c.make(r.selection).used[branch] || rare.odd && !r.keyed {
			continue
		}
		if n := c.branches[branch].choices[at].size(); n > most {
			best, most = r.selection, n
		}
	}
	return best, most > 0
}

// size returns how many elements a choice has.
func (c choice) size() int { return len(c.elements) + len(c.entries) }

// hasKey reports whether a name contains the usual key of a map.
func hasKey(places map[cluster.Ref]fault.Position, components []rollout.ComponentPreview) bool {
	for ref := range places {
		if strings.Contains(ref.Name, madeKey) {
			return true
		}
	}
	return slices.ContainsFunc(components, func(c rollout.ComponentPreview) bool { return strings.Contains(c.Name, madeKey) })
}

// An oddKey is the odd key that a map of a resource has, and the path of the map. The zero value is none.
type oddKey struct{ path, key string }

// isIn reports whether a name contains the key.
func (k oddKey) isIn(name string) bool { return k.key != "" && strings.Contains(name, k.key) }

// shown returns the key as a message shows it.
func (k oddKey) shown() string {
	if len(k.key) == longKey {
		return fmt.Sprintf("%q...", k.key[:10])
	}
	return fmt.Sprintf("%q", k.key)
}

// keyRule limits the keys of a map to those that may be part of a name. A definition has no other way to do that.
const keyRule = `@crd(rule="self.all(k, k.matches('^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$'))")`

// An oddCase is a case with an odd key: only what is wrong with names counts.
type oddCase struct {
	oddKey
	components []rollout.ComponentPreview
	// refusal returns why the API server refuses an object, or nil.
	refusal func(rollout.ObjectPreview) error
}

// explained returns a fault with what to do about it, and whether it counts: with an odd key, if a name with the key is the reason.
func (o oddCase) explained(f fault.Fault) (explained fault.Fault, counts bool) {
	if o.path == "" {
		return f, true // it is a case without an odd key
	}
	path := fault.SplitPath(f.Path)
	isName := path[0] == "components" && (len(path) == 2 || len(path) == 4 && path[2] == "objects") && o.isIn(path[len(path)-1])
	if !isName && !slices.ContainsFunc(o.components, func(c rollout.ComponentPreview) bool {
		return f.Path == "components."+c.Name && o.refusesName(c)
	}) {
		return f, false
	}
	f.Hint = fmt.Sprintf("a user may write the key %s in %s, and it becomes part of a name: let the schema limit the keys, as in {[string]: ..., %s}",
		o.shown(), o.path, keyRule)
	return f, true
}

// refusesName reports whether the API server, or the engine, refuses an object of a component for its name.
func (o oddCase) refusesName(c rollout.ComponentPreview) bool {
	switch c.Reason {
	case status.ReasonInvalidObject: // no inventory can have it
		return len(c.Source.Faults) == 0 && slices.ContainsFunc(c.Source.Objects, func(s program.Object) bool { return o.isIn(s.Identity.Name) })
	case status.ReasonObjectRejected, status.ReasonApplyFailed:
		return slices.ContainsFunc(c.Objects, func(p rollout.ObjectPreview) bool {
			return p.Manifest != nil && (o.key == "" || o.isIn(p.Manifest.GetName())) && isAboutName(o.refusal(p))
		})
	default:
		return false
	}
}

// isAboutName reports whether the API server has refused an object for its name.
func isAboutName(err error) bool {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) || refused.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(refused.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "metadata.name" })
}
