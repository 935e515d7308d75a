package check

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// rejectsInvention reports whether the objects of a component were rejected for values that may be made up.
func (t *trial) rejectsInvention(ctx context.Context, c rollout.DecidedComponent) bool {
	if !t.invented {
		return false
	}
	for _, o := range c.Objects {
		if o.Manifest == nil {
			continue
		}
		_, err := t.world.Cluster.DryRun().Apply(ctx, o.Manifest)
		if _, typed := errors.AsType[*cluster.SchemaError](err); err == nil || typed {
			continue // a type is not a matter of the value
		}
		var refused apierrors.APIStatus
		if !errors.As(err, &refused) || refused.Status().Details == nil {
			return true
		}
		for _, cause := range refused.Status().Details.Causes {
			if t.mayBeInvented(o.Manifest, cause.Field) {
				return true
			}
		}
	}
	return false
}

// mayBeInvented reports whether the value of a field contains one that is made up.
func (t *trial) mayBeInvented(u *unstructured.Unstructured, field string) bool {
	value, found := at(u.Object, field)
	if !found {
		return false
	}
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

// at returns the value at the path of a field error, such as spec.ports[0].port or data[key].
func at(value any, path string) (any, bool) {
	for _, part := range strings.FieldsFunc(strings.ReplaceAll(path, "]", ""), func(r rune) bool { return r == '.' || r == '[' }) {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[part]
			if !ok {
				return value, true // what is around it may have a key with a dot
			}
			value = next
		case []any:
			var i int
			if _, err := fmt.Sscanf(part, "%d", &i); err != nil || i >= len(v) || i < 0 {
				return value, true
			}
			value = v[i]
		default:
			return value, true
		}
	}
	return value, true
}
