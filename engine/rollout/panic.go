package rollout

import (
	"errors"
	"runtime/debug"

	"operetta.dev/engine/status"
)

// A PanicError is a panic in a part of a rollout. The other parts go on, and the rollout is
// retried.
type PanicError struct {
	// Cause is the value of the panic, and Stack its stack. Both are for the log only: a cause
	// may quote values.
	Cause any
	Stack []byte
}

// Error refers to the log.
func (e *PanicError) Error() string {
	return "the operator has a bug that this resource triggers; its log says where"
}

// CatchPanic calls a function and returns its panic, or nil. A PanicError that is the cause of the panic is returned as it is.
func CatchPanic(do func()) (fault *PanicError) {
	defer func() {
		if cause := recover(); cause != nil {
			var again bool
			if fault, again = cause.(*PanicError); !again {
				fault = &PanicError{Cause: cause, Stack: debug.Stack()}
			}
		}
	}()
	do()
	return nil
}

// guarded calls do, and returns a panic in it as a PanicError. Each goroutine of a rollout needs
// it: a panic that is not recovered ends the process.
func guarded(do func() error) (err error) {
	if fault := CatchPanic(func() { err = do() }); fault != nil {
		return fault
	}
	return err
}

// panicked records a panic, and returns the outcome of the component that it has stopped and
// whether the error is a panic.
func (r *run) panicked(name string, err error) (status.Component, bool) {
	fault, ok := errors.AsType[*PanicError](err)
	if !ok {
		return status.Component{}, false
	}
	r.result.Panics = append(r.result.Panics, fault)
	return failed(name, status.ReasonInternalError, fault.Error()), true
}
