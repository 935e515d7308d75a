package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// lastGood is the version of a package that was kept, or why there is none to be used.
type lastGood struct {
	understood

	err error
}

// lastGood looks at the version of the package in a folder that was kept. The engine may
// have changed since then, so it is examined like any other.
func (o *operator) lastGood(ctx context.Context, dir string) lastGood {
	if o.kept == nil {
		return lastGood{err: source.ErrNoLastGood}
	}
	snapshot, err := o.kept.Load(dir)
	if err != nil {
		return lastGood{err: err}
	}
	u, err := o.understand(ctx, snapshot)
	return lastGood{u, err}
}

// keep keeps a version that is served as the last good one.
func (o *operator) keep(dir string, s *source.Snapshot) {
	if o.kept == nil {
		return
	}
	if err := o.kept.Save(dir, s); err != nil {
		o.log.Error(err, "could not store the last good version of the package", "package", dir)
	}
}

// serveLast serves the last good version of a package that is wrong, and returns it, or nil
// when there is none that may be served.
func (o *operator) serveLast(ctx context.Context, last lastGood, dir string, fault error) *program.Program {
	err := last.err
	if err == nil {
		err = o.mayServe(ctx, last.understood)
	}
	if err == nil {
		err = o.manager.ServeOutdated(last.program, whereFaulty(fault))
	}
	switch {
	case err == nil:
		return last.program
	case errors.Is(err, source.ErrNoLastGood), ctx.Err() != nil:
	default:
		o.log.Info("the stored version of a broken package is not used", "package", dir, "why", faultsOf(err)[0].Error())
	}
	return nil
}

// mayServe errors when a kept version must not be served: another package has its kind, or
// another version of it was served since, which it would take back. Its definition is applied
// only where there is none: that of the cluster is of the same version or of a later one.
func (o *operator) mayServe(ctx context.Context, last understood) error {
	kind := last.program.GroupVersionKind().GroupKind()
	if o.manager.Serves(kind) {
		return fmt.Errorf("another package serves %s", kind)
	}
	for {
		err := o.matches(ctx, last)
		if err == nil || !unreachable(err) {
			return err
		}
		o.log.Info("the API server cannot be reached, trying again", "host", o.config.Host, "every", outageRetry.String(), "error", err.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(outageRetry):
		}
	}
}

// matches errors unless the cluster has the kind of a kept version, with resources of which
// at least one was last served by that version, or none by any.
func (o *operator) matches(ctx context.Context, last understood) error {
	client, err := apiextensions.NewForConfig(o.config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	_, err = client.CustomResourceDefinitions().Get(ctx, last.crd.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && o.flags.crds == crdsApply {
		return installCRD(ctx, o.config, o.log, last.crd)
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("looking for %s: %w", last.crd.Name, err)
	}
	served, err := o.manager.VersionsServed(ctx, last.program.GroupVersionKind())
	if err != nil {
		return err
	}
	if len(served) > 0 && !served[last.program.Digest()] {
		return fmt.Errorf("it is %s, and the resources were last served by another version", short(last.program.Digest()))
	}
	return nil
}

// tellOutdated makes the resources of a package say that an earlier version serves them.
func (o *operator) tellOutdated(ctx context.Context, served *program.Program, fault error) {
	if err := o.manager.Outdated(ctx, served, whereFaulty(fault)); err != nil && ctx.Err() == nil {
		o.log.Error(err, "could not report the broken package in the status of its resources", "package", served.Name())
	}
}

// later is something that is done after a while, unless it is called off. Its zero value
// is ready for use.
type later struct {
	mu    sync.Mutex
	timer *time.Timer
}

// after does something after a while, instead of what was to be done before.
func (l *later) after(wait time.Duration, do func()) {
	l.never()
	l.mu.Lock()
	defer l.mu.Unlock()
	var mine *time.Timer
	mine = time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.timer == mine {
			do()
		}
	})
	l.timer = mine
}

// never calls it off, and returns when it is not under way.
func (l *later) never() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = nil
}

// packageName returns the name of the package in a folder, which may not be readable.
func packageName(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return filepath.Base(dir)
	}
	return filepath.Base(abs)
}

// whereFaulty says in one line where a package is wrong, for those who may read its resources.
// What is wrong there is for those who may read the package: CUE quotes what it finds, which
// may be a password.
func whereFaulty(err error) string {
	faults := faultsOf(err)
	where := faults[0].Position.String()
	switch path := faults[0].Path; {
	case where == "":
		where = path
	case path != "":
		where += ": " + path
	}
	if where == "" {
		return "the operator's log says why"
	}
	if more := len(faults) - 1; more > 0 {
		where += fmt.Sprintf(" and %d more", more)
	}
	return where + "; the operator's log and `operetta vet` say why"
}
