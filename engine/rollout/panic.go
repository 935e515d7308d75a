package rollout

import (
	"errors"
	"runtime/debug"

	"operetta.dev/engine/status"
)

// A PanicError is a panic of a part of a rollout. Others do their work all the same, and
// the rollout is tried again.
type PanicError struct {
	// Cause is what the part panicked with, and Stack where. Both are for a log: a cause may
	// quote values.
	Cause any
	Stack []byte
}

// Error says that there is more to be found in the log.
func (e *PanicError) Error() string {
	return "the operator has a fault that this resource brings to light; its log says where"
}

// guarded does something, and returns a panic in it as a PanicError. Each goroutine of a
// rollout needs a guard of its own: a panic that nobody recovers there ends the process.
func guarded(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &PanicError{Cause: cause, Stack: debug.Stack()}
		}
	}()
	return do()
}

// panicked returns the outcome of a component that an operator's fault has stopped, and
// whether the error is one.
func (r *run) panicked(name string, err error) (status.Component, bool) {
	fault, ok := errors.AsType[*PanicError](err)
	if !ok {
		return status.Component{}, false
	}
	r.result.Panics = append(r.result.Panics, fault)
	return failed(name, status.ReasonInternalError, fault.Error()), true
}
