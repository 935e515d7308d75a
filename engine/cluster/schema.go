package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/object"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// A SchemaError lists the fields of an object that its kind does not have, or has with another
// type. The same object will always be rejected.
type SchemaError struct {
	Ref    Ref
	Fields []FieldFault
}

// A FieldFault is one field that contradicts the schema of its kind.
type FieldFault struct {
	// Path is the path of the field, such as spec.template.spec.containers[name="web"].image.
	Path    string
	Problem string
}

// Error names the object and every field.
func (e *SchemaError) Error() string {
	faults := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		faults[i] = f.Path + ": " + f.Problem
	}
	return fmt.Sprintf("%s: %s", e.Ref, strings.Join(faults, "; "))
}

// Schemas returns the types of a version of an API, or nil if the server does not publish any.
type Schemas func(ctx context.Context, version schema.GroupVersion) (managedfields.TypeConverter, error)

// PublishedSchemas returns the types that an API server publishes as OpenAPI. They are read on
// demand, once for all who need them, and cached for schemasFresh. That they cannot be read is remembered for
// schemasAgain: each of many objects that are rejected asks for them.
func PublishedSchemas(config *rest.Config) Schemas {
	return newSharedAnswers(schemasFresh, schemasAgain, schemasPatience, func(version schema.GroupVersion) (managedfields.TypeConverter, error) {
		return readSchemas(config, version)
	}).get
}

func readSchemas(config *rest.Config, version schema.GroupVersion) (managedfields.TypeConverter, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	paths, err := d.OpenAPIV3().Paths()
	if err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", version, err)
	}
	path := "apis/" + version.String()
	if version.Group == "" {
		path = "api/" + version.Version
	}
	document, ok := paths[path]
	if !ok {
		return nil, nil
	}
	text, err := document.Schema("application/json")
	if err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", version, err)
	}
	var parsed spec3.OpenAPI
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", version, err)
	}
	if parsed.Components == nil {
		return nil, nil
	}
	return managedfields.NewTypeConverter(parsed.Components.Schemas, false)
}

// schemaFault returns a SchemaError if an apply was rejected because the object contradicts the
// schema of its kind, and nil otherwise, or if the schema cannot be read. The API server itself
// returns an internal error for that, as for its own failures, and names at most the first field.
func (l *Live) schemaFault(ctx context.Context, object *unstructured.Unstructured, refused error) error {
	var status apierrors.APIStatus
	if l.Schemas == nil || !errors.As(refused, &status) || status.Status().Code < http.StatusInternalServerError {
		return nil
	}
	types, err := l.Schemas(ctx, object.GroupVersionKind().GroupVersion())
	if err != nil || types == nil {
		return nil //nolint:nilerr // the error of the API server is returned instead
	}
	return CheckSchema(types, object)
}

// maxFieldFaults bounds how many undeclared fields of one object are reported.
const maxFieldFaults = 20

// CheckSchema returns a SchemaError if an object contradicts the type of its kind, and nil otherwise
// or if there is no type for the kind. The library stops at the first undeclared field of a struct,
// in random order, so it is called again without that field.
func CheckSchema(types managedfields.TypeConverter, object *unstructured.Unstructured) error {
	out := &SchemaError{Ref: RefOf(object)}
	rest := object.DeepCopy()
	for len(out.Fields) < maxFieldFaults {
		_, err := types.ObjectToTyped(rest)
		faults, ok := errors.AsType[typed.ValidationErrors](err)
		if !ok {
			break
		}
		removed := false
		for _, f := range faults {
			out.Fields = append(out.Fields, out.fault(f, rest.Object))
			removed = fieldpath.Remove(rest.Object, f.Path) || removed
		}
		if !removed {
			break
		}
	}
	if len(out.Fields) == 0 {
		return nil
	}
	slices.SortFunc(out.Fields, func(a, b FieldFault) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Problem, b.Problem))
	})
	out.Fields = slices.Compact(out.Fields)
	return out
}

// fault converts an error of the library about a field of data. The library prints the value as Go has it, however large
// it is; its kind says what is wrong. A message about a Secret may quote the content.
func (e *SchemaError) fault(f typed.ValidationError, data map[string]any) FieldFault {
	problem := f.ErrorMessage
	if wanted, _, quotes := strings.Cut(problem, ", got "); quotes {
		problem = wanted + ", and it is " + kindOf(data, f.Path)
	}
	if object.MayBeSecret(e.Ref.Kind) {
		problem = "it contradicts the type of the field (the message is withheld, it may quote the Secret)"
	}
	return FieldFault{Path: strings.TrimPrefix(f.Path, "."), Problem: problem}
}

// kindOf says of what kind the value at a path is, in the words of JSON.
func kindOf(data map[string]any, path string) string {
	var value any = data
	for _, part := range fieldpath.Parse(path) {
		next, has := part.Lookup(value)
		if !has {
			return "another one"
		}
		value = next
	}
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
