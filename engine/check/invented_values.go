package check

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// rejectsInvention reports whether the objects of a component were rejected for values that may be made up.
func (t *trial) rejectsInvention(ctx context.Context, c rollout.ComponentPreview) bool {
	for _, o := range c.Objects {
		if o.Manifest == nil {
			continue
		}
		err := o.Refusal(ctx, t.world.Cluster)
		if wrong, is := errors.AsType[*cluster.SchemaError](err); is && t.mayBeNewer(wrong) {
			return true
		} else if err == nil || is || !t.invented {
			continue // a type is not a matter of the value
		}
		var refused apierrors.APIStatus
		if !errors.As(err, &refused) || refused.Status().Details == nil {
			return true
		}
		for _, cause := range refused.Status().Details.Causes {
			// What is not there is not made up: the values beside it are no excuse.
			if cause.Type != metav1.CauseTypeFieldValueRequired && t.mayBeInvented(o.Manifest, cause.Field) {
				return true
			}
		}
	}
	return false
}

// mayBeNewer reports whether an object contradicts its type only by fields that the author may know from a newer
// version of Kubernetes: those that no other field resembles.
func (t *trial) mayBeNewer(wrong *cluster.SchemaError) bool {
	kinds := t.kinds()
	for _, f := range wrong.Fields {
		path := namesIn(f.Path)
		at, known := kinds.Unknown(wrong.Ref.GroupVersionKind, path)
		if at < 0 {
			return false
		}
		if _, near := program.ClosestName(path[at], known); near || kinds.MisplacedHint(wrong.Ref.GroupVersionKind, path, at) != "" {
			return false
		}
	}
	return len(wrong.Fields) > 0
}

// hintAt says where the fields belong that the objects of a component at a path have in the wrong place, or is "".
func hintAt(ctx context.Context, t *trial, components []rollout.ComponentPreview, path string) string {
	at := slices.IndexFunc(components, func(c rollout.ComponentPreview) bool { return path == "components."+c.Name })
	if at < 0 || components[at].Reason != status.ReasonObjectRejected && components[at].Reason != status.ReasonApplyFailed {
		return ""
	}
	for _, o := range components[at].Objects {
		if o.Manifest == nil {
			continue
		}
		wrong, is := errors.AsType[*cluster.SchemaError](o.Refusal(ctx, t.world.Cluster))
		if !is {
			continue
		}
		if hint := misplacedIn(t.kinds(), wrong); hint != "" {
			return hint
		}
	}
	return ""
}

// misplacedIn says where the first field belongs that is in the wrong place, or is "".
func misplacedIn(kinds *program.Kinds, wrong *cluster.SchemaError) string {
	for _, f := range wrong.Fields {
		names := namesIn(f.Path)
		at, _ := kinds.Unknown(wrong.Ref.GroupVersionKind, names)
		if at < 0 {
			continue
		}
		if hint := kinds.MisplacedHint(wrong.Ref.GroupVersionKind, names, at); hint != "" {
			return hint
		}
	}
	return ""
}

// namesIn returns the names in the path of a field, those of elements of lists as one name.
func namesIn(path string) []string {
	return strings.FieldsFunc(inBrackets.ReplaceAllString(path, "."+syntax.Each), func(r rune) bool { return r == '.' })
}

// inBrackets are the elements of lists in the path of a field, such as [name="web"].
var inBrackets = regexp.MustCompile(`\[[^\]]*\]`)

// mayBeInvented reports whether the value of a field contains one that is made up.
func (t *trial) mayBeInvented(u *unstructured.Unstructured, field string) bool {
	value := at(u.Object, field)
	hit := false
	walk(value, func(leaf string) {
		for _, v := range t.inventions {
			hit = hit || strings.Contains(leaf, v)
		}
	})
	return hit
}

// walk calls f with all keys and scalars of a value, as texts.
func walk(value any, f func(string)) {
	switch v := value.(type) {
	case map[string]any:
		for k, below := range v {
			f(k)
			walk(below, f)
		}
	case []any:
		for _, below := range v {
			walk(below, f)
		}
	default:
		f(fmt.Sprint(v))
	}
}

// at returns the value at the path of a field error, such as spec.ports[0].port or data[key], or the last value on
// the way that exists.
func at(value any, path string) any {
	for _, part := range fieldpath.Parse(path) {
		next, exists := part.Lookup(value)
		if !exists {
			return value
		}
		value = next
	}
	return value
}

// kinds returns the complete types of Kubernetes. They are loaded when they are needed, which takes a moment.
func (c *checker) kinds() *program.Kinds {
	if c.complete != nil {
		return c.complete
	}
	complete, err := c.program.Snapshot().Complete()
	if err != nil {
		complete = c.program.Snapshot()
	}
	c.complete = program.NewKinds(complete)
	return c.complete
}
