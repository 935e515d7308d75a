package check

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// knows reports whether a fault is one of those that were found without resources: at the same line or in the same
// field, or about a part of that field. What stops everything, and is about no field, follows from an edge or an input.
func (o Options) knows(f fault.Fault) bool {
	return slices.ContainsFunc(o.Known, func(k fault.Fault) bool {
		switch {
		case f.Path == "":
			return stopsAll(k.Path) || isAt(k, f.Position) && k.Path == ""
		case f.Position.IsZero() && len(k.Path) > len(f.Path) && overlap(k.Path, f.Path):
			return true
		case isAt(k, f.Position) && (k.Path == "" || lastName(k.Path) == lastName(f.Path)):
			return true
		case k.Path == "" || f.Path == "":
			return false
		}
		return k.Path == f.Path || strings.Count(f.Path, ".") > 2 && overlap(k.Path, f.Path) // a component may have many
	})
}

// knowsWithin reports whether a fault is known at a path or below it.
func (o Options) knowsWithin(path string) bool {
	return slices.ContainsFunc(o.Known, func(k fault.Fault) bool { return len(k.Path) >= len(path) && overlap(k.Path, path) })
}

// knowsAt reports whether a fault is known at a line.
func (o Options) knowsAt(at fault.Position) bool {
	return slices.ContainsFunc(o.Known, func(k fault.Fault) bool { return isAt(k, at) })
}

// isAt reports whether a fault is at a line.
func isAt(k fault.Fault, at fault.Position) bool {
	return at.File != "" && k.Position.File == at.File && k.Position.Line == at.Line
}

// stopsAll reports whether nothing is rolled out because of a fault at a path: a cycle of components, an edge or an input.
func stopsAll(path string) bool {
	parts := strings.Split(path, ".")
	return parts[0] == "inputs" || parts[0] == "components" && (len(parts) == 2 || parts[2] == "dependsOn")
}

// overlap reports whether one of two paths leads to what is around the other one.
func overlap(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '.' || b[len(a)] == '[')
}

// lastName returns the last name of a path.
func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// failureIsKnown reports whether a component has failed for nothing but what is known to be wrong. What follows is uncertain
// then.
func (t *trial) failureIsKnown(ctx context.Context, c rollout.ComponentPreview) bool {
	known := len(t.options.Known) > 0 && c.State == status.Failed && t.options.knowsWithin("components."+c.Name+".objects")
	if c.Reason == status.ReasonObjectRejected || c.Reason == status.ReasonApplyFailed {
		known = len(t.options.Known) > 0 && t.refusalIsKnown(ctx, c)
	}
	t.uncertain, t.out.known = t.uncertain || known, t.out.known || known
	return known
}

// refusalIsKnown reports whether the API server refuses the objects of a component for fields that are known to be wrong, and
// for no others.
func (t *trial) refusalIsKnown(ctx context.Context, c rollout.ComponentPreview) bool {
	refused := false
	for _, o := range c.Objects {
		if o.Manifest == nil {
			continue
		}
		err := o.Refusal(ctx, t.world.Cluster)
		if err == nil {
			continue
		}
		wrong := fieldsOf(err)
		refused = true
		prefix := "components." + c.Name + ".objects." + o.Object + "."
		if len(wrong) == 0 || slices.ContainsFunc(wrong, func(field string) bool { return !t.options.knowsField(prefix + field) }) {
			return false
		}
	}
	return refused
}

// fieldsOf returns the fields for which the API server refuses an object, or none if it does not say them.
func fieldsOf(err error) (out []string) {
	if wrong, is := errors.AsType[*cluster.SchemaError](err); is {
		for _, f := range wrong.Fields {
			out = append(out, f.Path)
		}
		return out
	}
	var refused apierrors.APIStatus
	if errors.As(err, &refused) && refused.Status().Details != nil {
		for _, cause := range refused.Status().Details.Causes {
			out = append(out, cause.Field)
		}
	}
	return out
}

// knowsField reports whether a field of an object is known to be wrong, in whichever component: a known fault is about one
// of several with a template, or about one whose name was made up. The API server may name an element by its key.
func (o Options) knowsField(path string) bool {
	_, path, _ = strings.Cut(inBrackets.ReplaceAllString(path, "[]"), ".objects.")
	return slices.ContainsFunc(o.Known, func(k fault.Fault) bool {
		_, known, is := strings.Cut(inBrackets.ReplaceAllString(k.Path, "[]"), ".objects.")
		return is && overlap(known, path)
	})
}

// waitIsKnown reports whether a component waits for something that is known to be wrong.
func (t *trial) waitIsKnown(c rollout.ComponentPreview) bool {
	if t.options.knowsWithin("components." + c.Name) {
		return true
	}
	for _, p := range slices.Concat(c.Source.Requires, c.Source.Verify) {
		if p.Verdict != program.True && t.options.knowsAt(p.Position) {
			return true
		}
	}
	return slices.ContainsFunc(c.Source.MissingAt, func(path string) bool {
		return t.options.knowsAt(t.program.Syntax().PositionOf(slices.Concat([]string{"components", c.Name}, strings.Split(path, "."))...))
	})
}

// knowsDuplicate reports whether one of the objects that are rendered twice is known to be.
func (o Options) knowsDuplicate(all []rollout.ComponentPreview) bool {
	return slices.ContainsFunc(all, func(c rollout.ComponentPreview) bool {
		return c.Reason == status.ReasonDuplicateObject && o.knowsWithin("components."+c.Name+".objects")
	})
}
