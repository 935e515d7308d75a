package main

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refuse notes what cannot be done because the operator lacks a permission, so that the log and the readiness check
// say so. The permission may be granted at any time: for a new operator it often arrives a moment after its pod, and
// a pod that exits would take minutes to be restarted.
func (o *operator) refuse(what string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if reflect.DeepEqual(o.refused[what], err) {
		return
	}
	if o.refused == nil {
		o.refused = map[string]error{}
	}
	o.refused[what] = err
	o.log.Info("the operator lacks a permission, trying again", "for", what, "every", refusedRetry.String(), "error", err.Error())
}

// allow notes that something is not refused any more.
func (o *operator) allow(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.refused, what)
}

// lacksRights reports whether anything is refused.
func (o *operator) lacksRights() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.refused) > 0
}

// untilAllowed calls a function again as long as the operator lacks the permission for what it does.
func (o *operator) untilAllowed(ctx context.Context, what string, call func() error) error {
	defer o.allow(what)
	for {
		err := call()
		if !apierrors.IsForbidden(err) {
			return err
		}
		o.refuse(what, err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(refusedRetry):
		}
	}
}
