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
	"operetta.dev/engine/crd"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// lastGoodVersion is the stored version of a package, or the error why it cannot be used.
type lastGoodVersion struct {
	checkedPackage

	err error
}

// loadLastGood loads the stored version of the package in a folder. The version is checked like
// any other, because the engine may have changed since it was stored.
func (o *operator) loadLastGood(ctx context.Context, dir string) lastGoodVersion {
	if o.store == nil {
		return lastGoodVersion{err: source.ErrNoLastGood}
	}
	snapshot, err := o.store.Load(dir)
	if err != nil {
		return lastGoodVersion{err: err}
	}
	u, err := o.examiner.checkAndCompile(ctx, snapshot, examineAll)
	return lastGoodVersion{u, err}
}

// saveLastGood stores a version that is served as the last good one.
func (o *operator) saveLastGood(dir string, s *source.Snapshot) {
	if o.store == nil {
		return
	}
	if err := o.store.Save(dir, s); err != nil {
		o.log.Error(err, "could not store the last good version of the package", "package", dir)
	}
}

// serveLastGood serves the last good version of a broken package, and returns it, or nil if there
// is none that may be served. It reports whether that is to be tried again, because nobody could say whether it may.
func (o *operator) serveLastGood(ctx context.Context, last lastGoodVersion, dir string, fault error) (served *program.Program, again bool) {
	err := last.err
	if err == nil {
		err = o.checkLastGood(ctx, last.checkedPackage)
	}
	if err == nil {
		err = o.manager.ServeOutdated(last.program, faultLocation(fault), nil)
	}
	switch {
	case err == nil:
		return last.program, false
	case errors.Is(err, source.ErrNoLastGood), ctx.Err() != nil:
	case last.err == nil && unreachable(err):
		o.log.Info("the stored version of a broken package is tried again later: the API server does not say whether it may be used", "package", dir, "error", err.Error())
		return nil, true
	default:
		o.log.Info("the stored version of a broken package is not used", "package", dir, "why", faultsOf(err)[0].Error())
	}
	return nil, false
}

// checkLastGood errors if a stored version must not be served: because another package serves its
// kind, or because another version has been served since, which would be rolled back. Its
// CustomResourceDefinition is applied only if the cluster has none, because the one of the cluster
// is of the same version or of a later one. It asks the API server for startupGrace at most, because other packages wait meanwhile, and an
// outage may be that of one kind.
func (o *operator) checkLastGood(ctx context.Context, last checkedPackage) error {
	kind := last.program.GroupVersionKind().GroupKind()
	if o.manager.Serves(kind) {
		return fmt.Errorf("another package serves %s", kind)
	}
	last.crd = crd.WithAccount(last.crd, o.actAs(last.program).String())
	missing := false
	limited, cancel := context.WithTimeout(ctx, startupGrace)
	defer cancel()
	err := retryOutage(limited, o.config, o.log, func() (err error) {
		missing, err = o.checkServedVersion(limited, last)
		return err
	})
	if err != nil || !missing {
		return err
	}
	return o.installDefinition(ctx, last.crd) // a process that stands by waits here for the leader, however long that takes
}

// checkServedVersion errors if the resources of the kind were last served by other versions only.
// One resource that was served by the stored version is enough, and so is none that was ever served. It reports whether the definition
// is missing that this process installs.
func (o *operator) checkServedVersion(ctx context.Context, last checkedPackage) (missing bool, err error) {
	client, err := apiextensions.NewForConfig(o.config)
	if err != nil {
		return false, fmt.Errorf("connecting to the cluster: %w", err)
	}
	_, err = client.CustomResourceDefinitions().Get(ctx, last.crd.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && o.flags.crds == crdsApply {
		return true, nil
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return false, fmt.Errorf("looking for %s: %w", last.crd.Name, err)
	}
	served, err := o.manager.VersionsServed(ctx, last.program.GroupVersionKind())
	if err != nil {
		return false, err
	}
	if len(served) > 0 && !served[last.program.Digest()] {
		return false, fmt.Errorf("it is %s, and the resources were last served by another version", shortDigest(last.program.Digest()))
	}
	return false, nil
}

// reportOutdated makes the resources of a package say that an earlier version serves them.
func (o *operator) reportOutdated(ctx context.Context, served *program.Program, fault error) {
	if err := o.manager.ReportOutdated(ctx, served, faultLocation(fault)); err != nil && ctx.Err() == nil {
		o.log.Error(err, "could not report the broken package in the status of its resources", "package", served.Name())
	}
}

// delayedCall calls a function after a delay, unless it is cancelled before. Its zero value is
// ready for use.
type delayedCall struct {
	mu    sync.Mutex
	timer *time.Timer
}

// schedule calls a function after a delay, and cancels the call that was scheduled before.
func (d *delayedCall) schedule(delay time.Duration, call func()) {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(delay, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer {
			call()
		}
	})
	d.timer = timer
}

// cancel cancels the scheduled call. If the call runs already, cancel waits for it to return.
func (d *delayedCall) cancel() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.timer = nil
}

// packageName returns the name of the package in a folder, without reading the folder.
func packageName(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return filepath.Base(dir)
	}
	return filepath.Base(abs)
}

// faultLocation says in one line where a package is broken; the line goes into the status of its
// resources. It leaves out the message: CUE quotes values, such as a password, and people who
// may read the resources need not be allowed to read the package.
func faultLocation(err error) string {
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
