package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
