package main

import (
	"context"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// watchFolder serves the new version of a package whenever its files change. If the new version
// is broken, the version that is served keeps running; there may be none yet. It returns, when the context ends, the
// version that is served.
func (o *operator) watchFolder(ctx context.Context, load firstLoad, served *program.Program) *program.Program {
	var outdatedReport delayedCall
	source.Watch(ctx, load.state, o.loader.NewReader(load.dir).Read, func(snapshot *source.Snapshot, err error) {
		outdatedReport.cancel()
		var next checkedPackage
		if err == nil {
			next, err = o.examiner.checkAndCompile(ctx, snapshot, examineAll)
		} else {
			err = folderFault(load.dir, err)
		}
		if err == nil {
			err = o.serve(ctx, load.dir, next, served)
		}
		switch {
		case err == nil:
			served = next.program
			return
		case ctx.Err() != nil:
		case served == nil:
			o.manager.Broken(load.dir, packageName(load.dir), faultLocation(err))
		default:
			outdatedReport.schedule(outdatedReportDelay, func() { o.reportOutdated(ctx, served, err) })
		}
		o.reportBroken(ctx, load.dir, served, err)
	})
	outdatedReport.cancel()
	return served
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
