package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// operator is a running `operetta run`.
type operator struct {
	log     logr.Logger
	config  *rest.Config
	flags   runFlags
	manager *controller.Manager
	// examiner looks at packages before they are loaded.
	examiner *examiner
	// kept are the last good versions of packages; nil keeps none.
	kept *source.LastGood

	mu sync.Mutex
	// broken are the folders of packages that were not right since the start.
	broken map[string]bool
}

// understood is a package that is right.
type understood struct {
	snapshot *source.Snapshot
	program  *program.Program
	crd      *apiextensionsv1.CustomResourceDefinition
	warnings program.Faults
}

// An attempt is what came of the first look at a package.
type attempt struct {
	understood

	dir string
	// state is what the folder held; see source.Watch.
	state string
	// err is what is wrong with the package.
	err error
	// last is the last good version of a package that is wrong.
	last lastGood
}

// run serves packages until the context ends. One that is wrong is served once it is
// mended, and holds up none of the others.
func (o *operator) run(ctx context.Context, dirs []string) error {
	o.broken = map[string]bool{}
	for _, dir := range dirs {
		if _, err := source.Folder(dir); errors.Is(err, source.ErrNoFiles) {
			return emptyFolder(dir, err)
		}
		o.broken[dir] = true
	}
	var err error
	o.flags.options.Ready = o.ready
	if o.manager, err = controller.New(o.config, o.flags.options); err != nil {
		return err
	}
	all, running := errgroup.WithContext(ctx)
	all.Go(func() error { return o.manager.Start(running) })
	all.Go(func() error { return o.start(running, all, dirs) })
	if err := all.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// start looks at every package, serves what is right, and follows all of them.
func (o *operator) start(ctx context.Context, all *errgroup.Group, dirs []string) error {
	tried := o.tryAll(ctx, dirs)
	first := gather(tried, len(dirs))
	if err := distinct(first); err != nil {
		return err
	}
	// A version that was kept must not take the kind of a package that is right.
	slices.SortStableFunc(first, func(a, b attempt) int { return wrongLast(a) - wrongLast(b) })
	begin := func(a attempt) error {
		served, err := o.begin(ctx, a)
		if err == nil {
			all.Go(func() error { o.follow(ctx, a, served); return nil })
		}
		return err
	}
	for _, a := range first {
		if err := begin(a); err != nil {
			return err
		}
	}
	for range len(dirs) - len(first) {
		if err := begin(<-tried); err != nil {
			return err
		}
	}
	o.manager.PackagesLoaded()
	o.log.Info("running", "packages", dirs)
	return ctx.Err()
}

// wrongLast orders packages.
func wrongLast(a attempt) int {
	if a.err != nil {
		return 1
	}
	return 0
}

// tryAll looks at packages side by side.
func (o *operator) tryAll(ctx context.Context, dirs []string) <-chan attempt {
	tried := make(chan attempt, len(dirs))
	for _, dir := range dirs {
		go func() {
			a := attempt{dir: dir}
			snapshot, err := source.Folder(dir)
			a.state = source.Fingerprint(snapshot, err)
			if err != nil {
				a.err = emptyFolder(dir, err)
			} else {
				a.understood, a.err = o.understand(ctx, snapshot)
			}
			if a.err != nil {
				a.last = o.lastGood(ctx, dir)
			}
			tried <- a
		}()
	}
	return tried
}

// minSlots is how many packages are looked at together, whatever the machine is: one of
// them may only be waiting for its time to run out.
const minSlots = 4

// gather returns the packages that were looked at in time, in the order of their folders.
func gather(tried <-chan attempt, n int) []attempt {
	var out []attempt
	patience := time.NewTimer(prompt)
	defer patience.Stop()
	for late := false; len(out) < n && !late; {
		select {
		case a := <-tried:
			out = append(out, a)
		case <-patience.C:
			late = true
		}
	}
	slices.SortFunc(out, func(a, b attempt) int { return strings.Compare(a.dir, b.dir) })
	return out
}

// distinct errors when two packages serve the same kind.
func distinct(packages []attempt) error {
	by := map[schema.GroupKind]string{}
	for _, a := range packages {
		if a.err != nil {
			continue
		}
		kind := a.program.GroupVersionKind().GroupKind()
		if other, taken := by[kind]; taken {
			return &controller.TakenError{Kind: kind, By: other, Package: a.program.Name()}
		}
		by[kind] = a.program.Name()
	}
	return nil
}

// understand checks a version of a package in a worker, and compiles that very version.
func (o *operator) understand(ctx context.Context, snapshot *source.Snapshot) (understood, error) {
	found, err := o.examiner.examine(ctx, snapshot, examineAll)
	if err != nil {
		return understood{}, err
	}
	if len(found.Faults) > 0 {
		return understood{}, found.Faults
	}
	p, err := compile(snapshot)
	return understood{snapshot, p, found.CRD, found.Warnings}, err
}

// begin serves a package for the first time, or the last good version of one that is wrong,
// and returns what is served. It errors with what is not the package's fault, and ends the
// process: it would meet every other package as well.
func (o *operator) begin(ctx context.Context, a attempt) (*program.Program, error) {
	err := a.err
	if err == nil {
		err = o.serve(ctx, a.dir, a.understood, nil)
	}
	switch {
	case err == nil:
		return a.program, nil
	case a.err == nil && !ownFault(err):
		return nil, err
	case a.err == nil:
		a.last = o.lastGood(ctx, a.dir)
	}
	served := o.serveLast(ctx, a.last, a.dir, err)
	o.reportBroken(ctx, a.dir, served, err)
	if served == nil && ctx.Err() == nil {
		o.manager.Broken(a.dir, packageName(a.dir), whereFaulty(err))
	}
	return served, nil
}

// ownFault reports whether a package cannot be served because of what it says.
func ownFault(err error) bool {
	_, taken := errors.AsType[*controller.TakenError](err)
	return taken || apierrors.IsInvalid(err)
}

// serve installs the CustomResourceDefinition of a package and serves it, instead of
// the version that was served before. It keeps trying as long as the API server cannot
// be reached.
func (o *operator) serve(ctx context.Context, dir string, next understood, was *program.Program) error {
	if o.flags.crds == crdsApply {
		if err := installCRD(ctx, o.config, o.log, next.crd); err != nil {
			return err
		}
	}
	for _, w := range next.warnings {
		o.log.Info("the package has a warning", "package", next.program.Name(), "warning", w.Error())
	}
	if err := o.use(ctx, next.program, was); err != nil {
		return err
	}
	o.mu.Lock()
	delete(o.broken, dir)
	o.mu.Unlock()
	o.manager.Mended(dir, next.program.GroupVersionKind().GroupKind().String())
	o.keep(dir, next.snapshot)
	return nil
}

// use makes the manager serve a version of a package instead of the one before, if any.
func (o *operator) use(ctx context.Context, p, was *program.Program) error {
	switch {
	case was == nil:
		if err := o.manager.Serve(p); err != nil {
			return err
		}
		o.log.Info("package loaded", "package", p.Name(), "kind", p.GroupVersionKind().GroupKind().String(), "version", p.GroupVersionKind().Version, "digest", short(p.Digest()))
	case was.Digest() == p.Digest():
		// Its definition was applied all the same: that of what was in between may be there.
		if err := o.manager.Outdated(ctx, was, ""); err != nil {
			return err
		}
		o.log.Info("the package is unchanged again, the same version keeps running", "package", p.Name(), "digest", short(p.Digest()))
	default:
		if err := o.manager.Swap(ctx, was, p); err != nil {
			return err
		}
		o.log.Info("package replaced", "package", p.Name(), "was", short(was.Digest()), "now", short(p.Digest()))
	}
	return nil
}

// follow serves a package anew whenever its files change. When they are wrong, the
// version that is served stays; there may be none yet.
func (o *operator) follow(ctx context.Context, a attempt, served *program.Program) {
	var told later
	source.Watch(ctx, a.state, source.NewReader(a.dir).Read, func(snapshot *source.Snapshot, err error) {
		told.never()
		var next understood
		if err == nil {
			next, err = o.understand(ctx, snapshot)
		} else {
			err = emptyFolder(a.dir, err)
		}
		if err == nil {
			err = o.serve(ctx, a.dir, next, served)
		}
		switch {
		case err == nil:
			served = next.program
			return
		case ctx.Err() != nil:
		case served == nil:
			o.manager.Broken(a.dir, packageName(a.dir), whereFaulty(err))
		default:
			told.after(tellAfter, func() { o.tellOutdated(ctx, served, err) })
		}
		o.reportBroken(ctx, a.dir, served, err)
	})
}

// reportBroken says what is wrong with a package, a line for each fault.
func (o *operator) reportBroken(ctx context.Context, dir string, served *program.Program, err error) {
	if ctx.Err() != nil {
		return // it was not looked at to the end
	}
	for _, f := range faultsOf(err) {
		if served == nil {
			o.log.Error(nil, "the package is broken, waiting for it to be repaired", "package", dir, "fault", f.Error())
			continue
		}
		o.log.Error(nil, "the changed package is broken, the last good version keeps running",
			"package", served.Name(), "running", short(served.Digest()), "fault", f.Error())
	}
}

// ready errors as long as a package was never right: whatever starts a process in the
// place of another waits for that before it ends the other.
func (o *operator) ready() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.broken) == 0 {
		return nil
	}
	return fmt.Errorf("not right so far: %s", strings.Join(slices.Sorted(maps.Keys(o.broken)), ", "))
}
