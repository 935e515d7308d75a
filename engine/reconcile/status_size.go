package reconcile

import (
	"context"
	"fmt"
	"maps"
	"time"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A statusTooLargeError says that the API server refused a status as too large. An object must not be
// written before the inventory that has it is stored, and an immediate retry would not help.
type statusTooLargeError struct{ cause error }

// Error returns the message of the API server.
func (e *statusTooLargeError) Error() string {
	return fmt.Sprintf("the status is too large: %v", e.cause)
}

// Unwrap returns the error of the API server.
func (e *statusTooLargeError) Unwrap() error { return e.cause }

// A refusedStatus is what was requested when the API server refused a status as too large, and
// until when that is not tried again.
type refusedStatus struct {
	request string
	until   time.Time
}

// maxResource is how many bytes of one resource an API server stores, unless its etcd is configured
// otherwise.
const maxResource = 3 << 19 // 1.5 MiB

// sizeWith returns the size of the resource with a status in bytes, once the inventory has digests
// and UIDs.
func (s *state) sizeWith(after map[string]any) int {
	rest := maps.Clone(s.cr.Object)
	delete(rest, "status")
	whole := maps.Clone(after)
	delete(whole, fieldInventory)
	return cluster.SizeOf(rest) + cluster.SizeOf(whole) + s.inventory.Size()
}

// writeReducedStatus writes a status that says why another one could not be stored. It keeps the
// state in the stored status. It errors with a statusTooLargeError in any case.
func (s *state) writeReducedStatus(ctx context.Context, refused error) error {
	s.memory.refusedStatus = refusedStatus{s.request(), s.Now().Add(rollout.RejectedRetryAfter)}
	tooLarge := &statusTooLargeError{refused}
	in := s.statusInput(status.Completion{
		Fault:    status.Component{State: status.Failed, Reason: status.ReasonStatusTooLarge, Message: statusTooLargeText},
		Change:   status.Unchanged,
		Deleting: s.cr.GetDeletionTimestamp() != nil,
	})
	in.Before = map[string]any{}
	for _, kept := range []string{"conditions", "phase", "versions"} {
		in.Before[kept] = s.before[kept]
	}
	in.Inventory, _ = s.before[fieldInventory].([]any)
	in.Hooks, _ = s.before[fieldHooks].([]any)
	less := status.Build(in)
	if status.Equal(s.before, less) {
		return tooLarge
	}
	s.recordEvent(rollout.Event{Reason: string(status.ReasonStatusTooLarge), Message: statusTooLargeText, Warning: true})
	u := s.identity()
	u.Object["status"] = less
	if err := s.Resources.ApplyStatus(ctx, u); err != nil {
		s.log.Error(err, "a status is too large, and has no room to say so")
		return tooLarge
	}
	s.before = less
	return tooLarge
}

const statusTooLargeText = "the API server refuses the status as too large beside the rest of the resource, and nothing is written without it; make spec, labels and annotations smaller, or have fewer objects"

// tooLarge reports whether a status was refused because the resource would be too large with it.
func (s *subject) tooLarge(after map[string]any, err error) bool {
	whole := s.cr.DeepCopy()
	whole.Object["status"] = after
	return cluster.IsTooLarge(whole, err)
}
