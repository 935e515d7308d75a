package reconcile

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A statusTooLargeError says that a status was refused as too large. Nothing may be written
// whose inventory is not stored, and to try at once would not help.
type statusTooLargeError struct{ cause error }

// Error says what the API server has said.
func (e *statusTooLargeError) Error() string {
	return fmt.Sprintf("the status is too large: %v", e.cause)
}

// Unwrap returns the error of the API server.
func (e *statusTooLargeError) Unwrap() error { return e.cause }

// refusedStatuses remembers whose status was refused as too large; its zero value is ready for
// use.
type refusedStatuses struct {
	mu sync.Mutex
	of map[types.NamespacedName]refusedStatus
}

// refusedStatus is what a refused status was about, and until when it is not tried again.
type refusedStatus struct {
	about string
	until time.Time
}

func (o *refusedStatuses) forget(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of, key)
}

// loadState reports whether a status about something was refused lately.
func (o *refusedStatuses) refused(key types.NamespacedName, about string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was, ok := o.of[key]
	return ok && was.about == about && now.Before(was.until)
}

func (o *refusedStatuses) remember(key types.NamespacedName, about string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[types.NamespacedName]refusedStatus{}
	}
	o.of[key] = refusedStatus{about, now.Add(rollout.RejectedRetryAfter)}
}

// statusSizeCause identifies what the size of a status rests on, but for what is there.
func (s *state) statusSizeCause() string {
	_, digest := s.identify()
	return fmt.Sprint(s.cr.GetUID(), s.cr.GetGeneration(), digest, s.cr.GetAnnotations()[AnnotationReconcileAt], s.cr.GetDeletionTimestamp() != nil)
}

// maxResource is how many bytes an API server stores of one resource, unless its etcd was
// told otherwise.
const maxResource = 3 << 19 // 1.5 MiB

// sizeWith returns how many bytes the resource takes with a status, once digests and UIDs
// are in the inventory.
func (s *state) sizeWith(after map[string]any) int {
	rest := maps.Clone(s.cr.Object)
	delete(rest, "status")
	whole := maps.Clone(after)
	delete(whole, fieldInventory)
	return cluster.SizeOf(rest) + cluster.SizeOf(whole) + s.inventory.Size()
}

// writeReducedStatus stores a status that says why another one could not be stored, and keeps of
// the stored one what the engine goes by. It errors with a statusTooLargeError.
func (s *state) writeReducedStatus(ctx context.Context, refused error) error {
	s.refusedStatuses.remember(s.key(), s.statusSizeCause(), s.Now())
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
	if status.Same(s.before, less) {
		return tooLarge
	}
	s.recordEvent(rollout.Event{Reason: string(status.ReasonStatusTooLarge), Message: statusTooLargeText, Warning: true})
	u := s.identity()
	u.Object["status"] = less
	if err := s.Resources.ApplyStatus(ctx, u); err != nil {
		s.log.Error(err, "a status is too large, and that cannot be said in it")
		return tooLarge
	}
	s.before = less
	return tooLarge
}

const statusTooLargeText = "the API server refuses the status as too large beside the rest of the resource, and nothing is written without it; make spec, labels and annotations smaller, or have fewer objects"

// tooLarge reports whether a status was refused because of the size of the resource with
// it.
func (s *state) tooLarge(after map[string]any, err error) bool {
	whole := s.cr.DeepCopy()
	whole.Object["status"] = after
	return cluster.IsTooLarge(whole, err)
}
