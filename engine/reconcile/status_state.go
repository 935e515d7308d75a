package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A corruptStatusError says why a part of the status that holds the engine's state cannot be
// read. To act without it would lose objects, or run hooks again.
type corruptStatusError struct {
	path, problem string
	// remedy is what to do about it.
	remedy string
}

// Error says where it is.
func (e *corruptStatusError) Error() string { return e.path + " " + e.problem }

// What becomes of a field of the status once it was removed.
const (
	fieldInventory  = "inventory"
	fieldHooks      = "hooks"
	remedyInventory = "remove status.inventory, and it is rebuilt from the marks of the objects"
	remedyHooks     = "remove status.hooks; completed hooks will then run again"
)

// loadState reads the inventory and the hooks that earlier steps have stored in the status.
// It errors with a corruptStatusError.
func (s *state) loadState() error {
	var err error
	if s.inventory, err = decodeInventory(s.before); err != nil {
		return err
	}
	s.finished, err = decodeHooks(s.before)
	return err
}

// reportCorruptStatus writes that the status cannot be read, and does nothing else. It keeps
// the unreadable fields: they may be the only trace of some objects.
func (s *state) reportCorruptStatus(ctx context.Context, why *corruptStatusError) (time.Duration, error) {
	deleting := s.cr.GetDeletionTimestamp() != nil
	message := fmt.Sprintf("%v; nothing is written or deleted until it can be read: %s", why, why.remedy)
	after := s.statusWithFault(status.ReasonStatusUnreadable, message)
	if deleting {
		return unreadableAgain, s.reportDeletionBlocked(ctx, after, message)
	}
	if err := s.writeChanged(ctx, after); err != nil {
		return 0, err
	}
	return unreadableAgain, nil
}

// statusWithFault returns the status of a resource that a fault has stopped. What the engine goes by
// stays as it is, whatever it is.
func (s *state) statusWithFault(reason status.Reason, message string) map[string]any {
	after := s.build(status.Completion{
		Change: status.Unchanged, Deleting: s.cr.GetDeletionTimestamp() != nil,
		Fault: status.Component{State: status.Failed, Reason: reason, Message: message},
	})
	for _, field := range []string{fieldInventory, fieldHooks} {
		delete(after, field)
		if raw, ok := s.before[field]; ok {
			after[field] = raw
		}
	}
	return after
}

// writeChanged writes a status if it says something new.
func (s *state) writeChanged(ctx context.Context, after map[string]any) error {
	before := s.before
	if status.Same(before, after) {
		return nil
	}
	if err := s.write(ctx, after); err != nil {
		return err
	}
	s.recordTransition(before, after)
	return nil
}

// decodeInventory reads the inventory of a status.
func decodeInventory(s map[string]any) (ownership.Inventory, error) {
	path := "status." + fieldInventory
	raw, ok := s[fieldInventory]
	if !ok {
		return nil, nil
	}
	list, isList := raw.([]any)
	if !isList {
		return nil, &corruptStatusError{path, "is not a list", remedyInventory}
	}
	out, err := ownership.Decode(list)
	if wrong, ok := errors.AsType[*ownership.UnreadableError](err); ok {
		return nil, &corruptStatusError{path + wrong.Path, wrong.Problem, remedyInventory}
	}
	return out, err
}

// encodeHooks returns the hooks as JSON values, sorted by name.
func encodeHooks(finished map[string]rollout.HookState) []any {
	var out []any
	for _, name := range slices.Sorted(maps.Keys(finished)) {
		hook := map[string]any{"name": name, "state": string(finished[name].State)}
		if digest := finished[name].Digest; digest != "" {
			hook["digest"] = digest
		}
		out = append(out, hook)
	}
	return out
}

// decodeHooks reads the hooks of a status.
func decodeHooks(s map[string]any) (map[string]rollout.HookState, error) {
	path := "status." + fieldHooks
	all, ok := s[fieldHooks].([]any)
	if !ok && s[fieldHooks] != nil {
		return nil, &corruptStatusError{path, "is not a list", remedyHooks}
	}
	if len(all) > crd.MaxHooks {
		return nil, &corruptStatusError{path, fmt.Sprintf("has more than %d hooks", crd.MaxHooks), remedyHooks}
	}
	out := map[string]rollout.HookState{}
	for i, h := range all {
		at := fmt.Sprintf("%s[%d]", path, i)
		m, ok := h.(map[string]any)
		if !ok {
			return nil, &corruptStatusError{at, "is not an object", remedyHooks}
		}
		name, _ := m["name"].(string)
		digest, _ := m["digest"].(string)
		state, _ := m["state"].(string)
		finish := rollout.HookState{Digest: digest, State: status.State(state)}
		if field, problem := wrongHook(name, finish); problem != "" {
			return nil, &corruptStatusError{at + "." + field, problem, remedyHooks}
		}
		out[name] = finish
	}
	return out, nil
}

// wrongHook returns the field of a hook that cannot be, and what is wrong with it; "" is
// nothing.
func wrongHook(name string, f rollout.HookState) (field, problem string) {
	switch {
	case name == "":
		return "name", "is missing"
	case len(name) > crd.MaxHookName:
		return "name", fmt.Sprintf("is longer than %d characters", crd.MaxHookName)
	case len(f.Digest) > crd.MaxHookDigest:
		return "digest", fmt.Sprintf("is longer than %d characters", crd.MaxHookDigest)
	}
	switch f.State {
	case status.Verified, status.Failed, status.Waiting:
		return "", ""
	default:
		return "state", "is of a later version"
	}
}
