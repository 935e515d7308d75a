package main

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// A folderWatch follows the folder of one package.
type folderWatch struct {
	*operator

	dir string
	// state identifies what the folder held last; see source.Watch.
	state string
	// served is the version that is served, or nil.
	served *program.Program
	// checked is the last version that has passed its checks, if it is what the folder holds.
	checked checkedPackage
	// lastGood is the stored version, as long as it is still to be tried, and fault is what is wrong with that of the folder.
	lastGood *lastGoodVersion
	fault    error
	// told is what was said last about a version that is not served; nil after one that is.
	told fault.Faults
	// lacksRight says that the operator lacked a permission when a version was to be served last.
	lacksRight     bool
	outdatedReport delayedCall
}

// follow serves the new version of a package whenever its files change, until the context ends. If the new version
// is broken, the version that is served keeps running; there may be none yet. A version that something else keeps from being served,
// such as a resource that would lose a field, is tried again.
func (w *folderWatch) follow(ctx context.Context) {
	source.Watch(ctx, w.state, w.outcome(), w.loader.NewReader(w.dir).Read, func(snapshot *source.Snapshot, err error) source.Outcome {
		return w.changed(ctx, snapshot, err)
	})
	w.outdatedReport.cancel()
}

// outcome says whether what the folder holds, or the stored version, is to be tried again.
func (w *folderWatch) outcome() source.Outcome {
	passed := w.checked.snapshot != nil
	if w.lacksRight {
		return source.RetrySoon
	}
	if w.lastGood != nil || passed && (w.served == nil || w.served.Digest() != w.checked.program.Digest()) {
		return source.Retry
	}
	return source.Final
}

// changed serves another version, or says why not. As long as none is served, it tries the stored version that is still to be tried.
func (w *folderWatch) changed(ctx context.Context, snapshot *source.Snapshot, err error) source.Outcome {
	same := source.Fingerprint(snapshot, err) == w.state
	w.state = source.Fingerprint(snapshot, err)
	outcome := source.Final
	if w.lastGood == nil || !same || w.checked.snapshot != nil { // what is broken is not examined again
		outcome = w.take(ctx, snapshot, err)
	}
	if w.served != nil || w.lastGood == nil {
		w.lastGood = nil
		return outcome
	}
	if w.tryLastGood(ctx); w.served != nil {
		w.manager.ReportRepaired(w.dir, w.served.GroupVersionKind().GroupKind().String())
		w.reportBroken(ctx, w.dir, w.served, w.fault)
	}
	return w.outcome()
}

// tryLastGood serves the stored version of a broken package, if it may be served. If nobody can say that, it is still to be tried.
func (w *folderWatch) tryLastGood(ctx context.Context) {
	served, again := w.serveLastGood(ctx, *w.lastGood, w.dir, w.fault)
	if w.served = served; !again {
		w.lastGood = nil
	}
}

// take serves another version, or says why not.
func (w *folderWatch) take(ctx context.Context, snapshot *source.Snapshot, err error) source.Outcome {
	outcome := source.Final
	if err != nil || w.checked.snapshot == nil || w.checked.snapshot.Digest() != snapshot.Digest() {
		w.outdatedReport.cancel()
		w.told = nil
		err = w.check(ctx, snapshot, err)
	}
	if err == nil {
		err, outcome = w.serve(ctx, w.dir, w.checked, w.served), source.Retry
	}
	if w.lacksRight = false; !apierrors.IsForbidden(err) {
		w.allow(w.dir)
	}
	switch {
	case err == nil:
		w.served, w.told = w.checked.program, nil
		return source.Final
	case apierrors.IsForbidden(err) && w.served == nil:
		w.lacks(err)
		return source.RetrySoon
	case ctx.Err() != nil || reflect.DeepEqual(faultsOf(err), w.told):
		return outcome // it was interrupted, or tried again and everything is said
	}
	w.fault = err
	if served := w.served; served == nil {
		w.manager.ReportBroken(w.dir, packageName(w.dir), faultLocation(err))
	} else {
		w.outdatedReport.schedule(outdatedReportDelay, func() { w.reportOutdated(ctx, served, err) })
	}
	w.reportBroken(ctx, w.dir, w.served, err)
	w.told = faultsOf(err)
	return outcome
}

// lacks notes that a package is not served because the operator lacks a permission. It is not broken, and its resources are not told so.
func (w *folderWatch) lacks(err error) {
	w.lacksRight = true
	w.refuse(w.dir, err)
}

// check examines a version that could be read, or says why none could.
func (w *folderWatch) check(ctx context.Context, snapshot *source.Snapshot, err error) error {
	w.checked = checkedPackage{}
	if err != nil {
		return folderFault(w.dir, err)
	}
	checked, err := w.examiner.checkAndCompile(ctx, snapshot, examineAll)
	if err != nil {
		return err
	}
	w.checked = checked
	return nil
}

// reportBroken logs why a package is broken, one line for each fault.
func (o *operator) reportBroken(ctx context.Context, dir string, served *program.Program, err error) {
	if ctx.Err() != nil {
		return // the check was interrupted
	}
	for _, f := range faultsOf(err) {
		if served == nil {
			o.log.Error(nil, "the package is broken, waiting for it to be repaired", "package", dir, "fault", f.Error())
			continue
		}
		o.log.Error(nil, "the changed package is broken, the last good version keeps running",
			"package", served.Name(), "running", shortDigest(served.Digest()), "fault", f.Error())
	}
}
