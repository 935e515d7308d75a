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

// A corruptStatusError says why a part of the engine's state in the status cannot be read. To
// continue without it would lose objects, or run hooks again.
type corruptStatusError struct {
	path, problem string
	// remedy tells people what to do.
	remedy string
}

// Error says where it is.
func (e *corruptStatusError) Error() string { return e.path + " " + e.problem }

// The fields with the engine's state, and what happens if a person removes them.
const (
	fieldInventory  = "inventory"
	fieldHooks      = "hooks"
	remedyInventory = "remove status.inventory, and it is rebuilt from the marks of the objects"
	remedyHooks     = "remove status.hooks; completed hooks will then run again"
)

// loadState reads the inventory and the hooks that earlier reconciles have stored in the status. It errors
// with a corruptStatusError.
func (s *state) loadState() error {
	var err error
	if s.inventory, err = decodeInventory(s.before); err != nil {
		return err
	}
	s.hookStates, err = decodeHooks(s.before)
	return err
}

// reportCorruptStatus reports that the status cannot be read, and does nothing else. It keeps the
// unreadable fields: they may be the only trace of some objects.
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

// statusWithFault returns the status of a resource that a fault has stopped. It keeps the engine's
// state as it is, readable or not.
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

// decodeInventory reads the inventory of a status. It errors with a corruptStatusError.
func decodeInventory(s map[string]any) (ownership.Inventory, error) {
	list, err := listIn(s, fieldInventory, remedyInventory)
	if err != nil {
		return nil, err
	}
	out, err := ownership.Decode(list)
	return out, corrupt("status."+fieldInventory, err, remedyInventory)
}

// listIn returns a list of a status, which may be missing. It errors with a corruptStatusError.
func listIn(s map[string]any, field, remedy string) ([]any, error) {
	value, set := s[field]
	list, ok := value.([]any)
	if set && !ok {
		return nil, &corruptStatusError{"status." + field, "is not a list", remedy}
	}
	return list, nil
}

// corrupt returns an error of package ownership as a corruptStatusError.
func corrupt(path string, err error, remedy string) error {
	if wrong, ok := errors.AsType[*ownership.UnreadableError](err); ok {
		return &corruptStatusError{path + wrong.Path, wrong.Problem, remedy}
	}
	return err
}

// A storedHook is a hook as the status has it.
type storedHook struct {
	Name   string       `json:"name"`
	State  status.State `json:"state"`
	Digest string       `json:"digest,omitempty"`
}

// encodeHooks returns the hooks as JSON values, sorted by name.
func encodeHooks(states rollout.HookStates) []any {
	var out []any
	for _, name := range slices.Sorted(maps.Keys(states)) {
		hook := map[string]any{"name": name, "state": string(states[name].State)}
		if digest := states[name].Digest; digest != "" {
			hook["digest"] = digest
		}
		out = append(out, hook)
	}
	return out
}

// decodeHooks reads the hooks of a status. It errors with a corruptStatusError.
func decodeHooks(s map[string]any) (rollout.HookStates, error) {
	path := "status." + fieldHooks
	list, err := listIn(s, fieldHooks, remedyHooks)
	if err != nil {
		return nil, err
	}
	if len(list) > crd.MaxHooks {
		return nil, &corruptStatusError{path, fmt.Sprintf("has more than %d hooks", crd.MaxHooks), remedyHooks}
	}
	out := rollout.HookStates{}
	for i, v := range list {
		var hook storedHook
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := ownership.DecodeStrict("", v, &hook); err != nil {
			return nil, corrupt(at, err, remedyHooks)
		}
		if field, problem := hook.fault(); problem != "" {
			return nil, &corruptStatusError{at + "." + field, problem, remedyHooks}
		}
		out[hook.Name] = rollout.HookState{Digest: hook.Digest, State: hook.State}
	}
	return out, nil
}

// fault returns the first field of a hook that no hook can have, and what is wrong with it.
func (h storedHook) fault() (field, problem string) {
	switch {
	case h.Name == "":
		return "name", "is missing"
	case len(h.Name) > crd.MaxHookName:
		return "name", fmt.Sprintf("is longer than %d characters", crd.MaxHookName)
	case len(h.Digest) > crd.MaxHookDigest:
		return "digest", fmt.Sprintf("is longer than %d characters", crd.MaxHookDigest)
	}
	switch h.State {
	case status.Verified, status.Failed, status.Waiting:
		return "", ""
	default:
		return "state", "is of a later version"
	}
}
