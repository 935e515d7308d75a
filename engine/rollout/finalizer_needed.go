package rollout

import (
	"slices"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// needsFinalizer reports whether garbage collection would not do for an inventory: its objects
// are deleted in an order, an owner reference does not reach them, or a hook runs before.
func (hk *hooks) needsFinalizer(inventory ownership.Inventory) bool {
	return inventory.NeedsTeardown() || slices.ContainsFunc(hk.rollout.Hooks, func(h program.Hook) bool { return h.Phase == program.BeforeDelete })
}
