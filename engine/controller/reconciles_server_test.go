package controller

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// leading is a manager that leads.
type leading struct{ manager.Manager }

// Elected implements manager.Manager.
func (leading) Elected() <-chan struct{} {
	out := make(chan struct{})
	close(out)
	return out
}

// A package has its kind before what its controller is made of is there.
func TestAKindIsAskedAboutWhileItsPackageIsBeingAdded(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Group: "example.com", Kind: "Shop"}
	m := &Manager{manager: leading{}, controllers: map[schema.GroupKind]*packageController{kind: {as: &identity{}}}}
	if _, missing := m.reconciles(kind, types.NamespacedName{Namespace: "default", Name: "my"}); missing == nil || missing.code != http.StatusNotFound {
		t.Errorf("the answer is %+v, want that the kind is not served", missing)
	}
	if _, err := m.Resources(t.Context(), kind.WithVersion("v1")); err == nil {
		t.Error("the resources are listed")
	}
}
