package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAResourceRemembersNothingOfAnotherOneOfItsName(t *testing.T) {
	t.Parallel()
	var all memories
	key := types.NamespacedName{Namespace: "shop", Name: "main"}
	all.get(key, "1").refusals = map[ownWrite]reportedRefusal{ownStatusWrite: {}}
	if len(all.get(key, "1").refusals) == 0 {
		t.Error("it has forgotten what it was told")
	}
	if len(all.get(key, "2").refusals) > 0 {
		t.Error("a resource that was created again remembers the one before")
	}
	if len(all.of) != 1 {
		t.Errorf("there are %d memories, want that of the resource that is there", len(all.of))
	}
}
