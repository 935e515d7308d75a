package main

import (
	"context"
	"reflect"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// watchFolder serves the new version of a package whenever its files change. If the new version
// is broken, the version that is served keeps running; there may be none yet. A version that something else keeps from being served,
// such as a resource that would lose a field, is tried again. It returns, when the context ends, the version that is served.
func (o *operator) watchFolder(ctx context.Context, load firstLoad, served *program.Program) *program.Program {
	w := folderWatch{operator: o, dir: load.dir, served: served}
	outcome := source.Settled
	if load.err == nil && (served == nil || served.Digest() != load.program.Digest()) {
		outcome, w.checked = source.Refused, load.checkedPackage
	}
	source.Watch(ctx, load.state, outcome, o.loader.NewReader(load.dir).Read, func(snapshot *source.Snapshot, err error) source.Outcome {
		return w.changed(ctx, snapshot, err)
	})
	w.outdatedReport.cancel()
	return w.served
}

// A folderWatch follows the folder of one package.
type folderWatch struct {
	*operator

	dir string
	// served is the version that is served, or nil.
	served *program.Program
	// checked is the last version that has passed its checks.
	checked checkedPackage
	// told is what was said last about a version that is not served; nil after one that is.
	told           fault.Faults
	outdatedReport delayedCall
}

// changed serves another version, or says why not.
func (w *folderWatch) changed(ctx context.Context, snapshot *source.Snapshot, err error) source.Outcome {
	outcome := source.Settled
	if err != nil || w.checked.snapshot == nil || w.checked.snapshot.Digest() != snapshot.Digest() {
		w.outdatedReport.cancel()
		w.told = nil
		err = w.check(ctx, snapshot, err)
	}
	if err == nil {
		err, outcome = w.serve(ctx, w.dir, w.checked, w.served), source.Refused
	}
	switch {
	case err == nil:
		w.served, w.told = w.checked.program, nil
		return source.Settled
	case ctx.Err() != nil || reflect.DeepEqual(faultsOf(err), w.told):
		return outcome // it was interrupted, or tried again and everything is said
	}
	if served := w.served; served == nil {
		w.manager.Broken(w.dir, packageName(w.dir), faultLocation(err))
	} else {
		w.outdatedReport.schedule(outdatedReportDelay, func() { w.reportOutdated(ctx, served, err) })
	}
	w.reportBroken(ctx, w.dir, w.served, err)
	w.told = faultsOf(err)
	return outcome
}

// check examines a version that could be read, or says why none could.
func (w *folderWatch) check(ctx context.Context, snapshot *source.Snapshot, err error) error {
	w.checked = checkedPackage{}
	if err != nil {
		return folderFault(w.dir, err)
	}
	w.checked, err = w.examiner.checkAndCompile(ctx, snapshot, examineAll)
	return err
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
