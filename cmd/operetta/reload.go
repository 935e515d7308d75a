package main

import (
	"context"
	"time"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// reading is what was read of a folder.
type reading struct {
	snapshot *source.Snapshot
	err      error
}

// watchFolder serves the new version of a package whenever its files change. If the new version
// is broken, the version that is served keeps running; there may be none yet. It returns, when the context ends, the
// version that is served.
func (o *operator) watchFolder(ctx context.Context, load firstLoad, first firstServed) *program.Program {
	w := &folderWatch{operator: o, dir: load.dir, served: first.program}
	if first.loss != nil {
		w.hold(load.checkedPackage, first.loss)
	}
	changes := make(chan reading)
	go source.Watch(ctx, load.state, o.loader.NewReader(load.dir).Read, func(snapshot *source.Snapshot, err error) {
		select {
		case changes <- reading{snapshot, err}:
		case <-ctx.Done():
		}
	})
	for {
		select {
		case <-ctx.Done():
			w.outdated.cancel()
			return w.served
		case r := <-changes:
			w.changed(ctx, r)
		case <-w.again:
			w.tryAgain(ctx)
		}
	}
}

// folderWatch is what is known of a folder that is watched.
type folderWatch struct {
	*operator

	dir string
	// served is what is served, or nil.
	served   *program.Program
	outdated delayedCall
	// held is a version whose definition resources hold back, why is what was said of that, and again is when it is tried again; nil is
	// never.
	held  checkedPackage
	why   error
	again <-chan time.Time
}

// hold notes that a version is to be tried again.
func (w *folderWatch) hold(next checkedPackage, why error) {
	w.held, w.why, w.again = next, why, time.After(lossAgain)
}

// tryAgain serves a version that resources have held back. It says nothing if nothing has changed.
func (w *folderWatch) tryAgain(ctx context.Context) {
	next, why := w.held, w.why
	if err := w.serve(ctx, next); err != nil && !isSameLoss(err, why) {
		w.broken(ctx, err)
	}
}

// changed serves what was read, if it passes its checks.
func (w *folderWatch) changed(ctx context.Context, r reading) {
	w.outdated.cancel()
	next, err := checkedPackage{}, r.err
	if err == nil {
		next, err = w.examiner.checkAndCompile(ctx, r.snapshot, examineAll)
	} else {
		err = folderFault(w.dir, err)
	}
	if err == nil {
		err = w.serve(ctx, next)
	} else {
		w.forgetHeld()
	}
	if err != nil {
		w.broken(ctx, err)
	}
}

// forgetHeld ends what was held back: the folder has another version.
func (w *folderWatch) forgetHeld() { w.held, w.why, w.again = checkedPackage{}, nil, nil }

// serve serves a version that has passed its checks. If resources hold it back, it is tried again.
func (w *folderWatch) serve(ctx context.Context, next checkedPackage) error {
	w.outdated.cancel()
	w.forgetHeld()
	err := w.operator.serve(ctx, w.dir, next, w.served)
	switch {
	case err == nil:
		w.served = next.program
	case isLoss(err):
		w.hold(next, err)
	}
	return err
}

// broken says what is wrong with the present version.
func (w *folderWatch) broken(ctx context.Context, err error) {
	switch served := w.served; {
	case ctx.Err() != nil:
	case served == nil:
		w.manager.Broken(w.dir, packageName(w.dir), faultLocation(err))
	default:
		w.outdated.schedule(outdatedReportDelay, func() { w.reportOutdated(ctx, served, err) })
	}
	w.reportBroken(ctx, w.dir, w.served, err)
}

// reportBroken logs why a package is broken, one line for each fault.
func (o *operator) reportBroken(ctx context.Context, dir string, served *program.Program, err error) {
	if ctx.Err() != nil {
		return // the check was interrupted
	}
	o.reportLoss(ctx, err)
	for _, f := range faultsOf(err) {
		if served == nil {
			o.log.Error(nil, "the package is broken, waiting for it to be repaired", "package", dir, "fault", f.Error())
			continue
		}
		o.log.Error(nil, "the changed package is broken, the last good version keeps running",
			"package", served.Name(), "running", shortDigest(served.Digest()), "fault", f.Error())
	}
}
