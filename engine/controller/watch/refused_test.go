package watch

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
)

// TestTheNamespacesThatMayNotBeReadAreKnown also gives the permission back.
func TestTheNamespacesThatMayNotBeReadAreKnown(t *testing.T) {
	t.Parallel()
	thing := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	other := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Other"}
	namespaces := object.Namespaces{"a", "b", "c"}
	r := &Resources{namespaces: namespaces, parts: map[string]Cache{}}
	for _, name := range namespaces {
		r.parts[name] = Cache{errors: &watchErrors{}}
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, r.Of(thing, cluster.Namespaced).Refused()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("nothing was tried")
	r.parts["a"].errors.may(thing.String(), false)
	r.parts["c"].errors.may(thing.String(), false)
	r.parts["b"].errors.may(other.String(), false)
	expect("two are refused", "a", "c")
	r.parts["a"].errors.may(thing.String(), true)
	r.parts["b"].errors.may(thing.String(), true)
	expect("one has its role again", "c")
}

func TestAKindWhoseDefinitionIsGoneIsKnown(t *testing.T) {
	t.Parallel()
	thing := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	other := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Other"}
	unknown := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{Group: "example.com", Resource: "things"}, "", "404 page not found", 0, true)
	for name, row := range map[string]struct {
		reason string
		tried  func(e *watchErrors)
		want   bool
	}{
		"nothing was tried":         {"nobody has said so", func(*watchErrors) {}, false},
		"the API server is down":    {"the definition may be there", func(e *watchErrors) { e.note(thing.String(), errors.New("connection refused")) }, false},
		"it may not be listed":      {"it is there, or not", func(e *watchErrors) { e.note(thing.String(), forbidden("no")) }, false},
		"another kind is gone":      {"this one is not", func(e *watchErrors) { e.note(other.String(), unknown) }, false},
		"the API server knows none": {"the watch has ended, and the list is refused", func(e *watchErrors) { e.note(thing.String(), fmt.Errorf("failed to list: %w", unknown)) }, true},
		"the connection fails then": {"it says nothing new", func(e *watchErrors) {
			e.note(thing.String(), unknown)
			e.note(thing.String(), errors.New("connection refused"))
		}, true},
		"it can be listed again": {"somebody has installed it", func(e *watchErrors) {
			e.note(thing.String(), unknown)
			e.may(thing.String(), true)
		}, false},
		"it is gone once more": {"the first time says nothing about the second", func(e *watchErrors) {
			e.note(thing.String(), unknown)
			e.may(thing.String(), true)
			e.note(thing.String(), unknown)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespaces := object.Namespaces{"a", "b"}
			r := &Resources{namespaces: namespaces, parts: map[string]Cache{"a": {errors: &watchErrors{}}, "b": {errors: &watchErrors{}}}}
			row.tried(r.parts["b"].errors)
			if got := r.Of(thing, cluster.Namespaced).Gone(); got != row.want {
				t.Errorf("%s: gone is %v, want %v", row.reason, got, row.want)
			}
		})
	}
}
