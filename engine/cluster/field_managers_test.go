package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Objects of any cluster have these names in their managed fields: what another name has written before is nobody's any more, so it would
// neither be changed nor removed.
func TestTheFieldManagersOfTheEngineKeepTheirNames(t *testing.T) {
	t.Parallel()
	want := []string{"operetta", "operetta-relinquished", "operetta-dry-run", "operetta-finalizer"}
	got := []string{FieldManager, HandOverManager, DryRunFieldManager, finalizerManager}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the names (-want +got):\n%s", diff)
	}
	for _, name := range want {
		if !OfEngine(name) {
			t.Errorf("%s is not the engine", name)
		}
	}
	for _, name := range []string{"", "kubectl", "operetta-", "operetta-system"} {
		if OfEngine(name) {
			t.Errorf("%q is the engine", name)
		}
	}
}
