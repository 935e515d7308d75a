package main

import (
	"cmp"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/source"
)

// operator is a running `operetta run`.
type operator struct {
	log     logr.Logger
	config  *rest.Config
	flags   runFlags
	manager *controller.Manager
	// examiner checks packages in worker processes before they are loaded.
	examiner *examiner
	// loader reads packages, and registries has the modules that they depend on.
	loader     source.Loader
	registries *registry.Client
	// store holds the last good version of each package; nil stores none.
	store *source.LastGood

	standby standby

	// foldersTried is closed once the packages of all folders have been tried. Packages of the cluster
	// wait for that: which of two packages of one kind serves must not depend on which loads first.
	foldersTried chan struct{}

	mu sync.Mutex
	// broken holds the folders of packages that have not been served since the start.
	broken map[string]bool
	// begun is closed once the Packages of the start have been tried, which webhooks need; nil without webhooks or Packages.
	begun <-chan struct{}
	// waiting counts the definitions that this process waits for another one to install: the leader, or shard 0.
	waiting int
	// refused says what cannot be done because the operator lacks a permission, with the answer of the API server.
	refused map[string]error
	// ownLater says that the engine's own definitions could not be installed before the start, because a permission was missing.
	ownLater bool
}

// firstLoad is the result of loading a package at startup.
type firstLoad struct {
	checkedPackage

	dir string
	// state identifies what the folder held when it was read; see source.Watch.
	state string
	// err is why the package is broken; nil if it is not.
	err error
	// lastGood is the stored version of a broken package.
	lastGood lastGoodVersion
}

// run serves packages until the context ends. A broken package is served once it is
// repaired, and does not delay the others.
func (o *operator) run(ctx context.Context, dirs []string) error {
	o.broken, o.foldersTried = map[string]bool{}, make(chan struct{})
	for _, dir := range dirs {
		// A misspelled folder would never have files. No registry is asked: it may hang.
		if _, err := (source.Loader{Overlays: o.loader.Overlays}).Folder(dir); errors.Is(err, source.ErrNoFiles) {
			return folderFault(dir, err)
		}
		o.broken[dir] = true
	}
	var err error
	o.flags.options.Ready = o.ready
	if o.manager, err = controller.New(o.config, o.flags.options); err != nil {
		return err
	}
	tried, err := o.servePackages()
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.manager.Start(groupCtx) })
	group.Go(func() error { return o.installPending(groupCtx) })
	group.Go(func() error { return o.startPackages(groupCtx, group, dirs, tried) })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// startPackages loads every package, serves those that pass their checks, and watches all folders. The
// channel is closed once the Packages of the cluster have been tried, too; it may be nil.
func (o *operator) startPackages(ctx context.Context, group *errgroup.Group, dirs []string, tried <-chan struct{}) error {
	loads := o.loadAll(ctx, dirs)
	all := &folders{operator: o, group: group, watched: map[string]context.CancelFunc{}}
	if o.flags.options.Shard.IsPrimary() {
		if err := o.tryPackages(ctx, all, loads, len(dirs), tried); err != nil {
			return err
		}
	} else { // shard 0 may install the definitions at any time, or only after this process has become ready
		group.Go(func() error { return o.tryPackages(ctx, all, loads, len(dirs), tried) })
	}
	o.log.Info("running", "packages", dirs, "packagesFromCluster", tried != nil)
	return ctx.Err()
}

// tryPackages serves the packages of all folders that pass their checks, and those that come later.
func (o *operator) tryPackages(ctx context.Context, all *folders, loads <-chan firstLoad, n int, tried <-chan struct{}) error {
	if o.flags.options.LeaderElection || o.ownLater { // otherwise it was installed before
		for _, definition := range o.flags.ownCRDs() {
			if err := o.untilAllowed(ctx, definition.Name, func() error { return o.installDefinition(ctx, definition) }); err != nil {
				return cmp.Or(ctx.Err(), err) // the end of the process has then caused the error
			}
		}
	}
	first := collectLoads(loads, n)
	if err := checkKindsUnique(first); err != nil {
		return err
	}
	// The stored version of a broken package must not take the kind of a package that is not broken.
	slices.SortStableFunc(first, func(a, b firstLoad) int { return brokenLast(a) - brokenLast(b) })
	var each errgroup.Group
	if o.flags.options.Shard.IsPrimary() {
		each.SetLimit(1) // in that order
	}
	for _, a := range first {
		each.Go(func() error { return all.serve(ctx, a) })
	}
	for range n - len(first) {
		a := <-loads
		each.Go(func() error { return all.serve(ctx, a) })
	}
	if err := each.Wait(); err != nil {
		return cmp.Or(ctx.Err(), err) // the end of the process has then caused the error
	}
	all.group.Go(func() error { return all.follow(ctx, o.flags.patterns) })
	close(o.foldersTried)
	all.group.Go(func() error { o.awaitPackages(ctx, tried); return nil })
	return nil
}

// awaitPackages notes that every package has been tried, once the Packages of the cluster have been: this process has
// decided about them or, in another shard than the first, has followed the decisions. What it followed before it
// became the leader does not count. It waits for a package of a folder that lacks only a permission, because its
// resources must not be torn down without it. The channel may be nil.
func (o *operator) awaitPackages(ctx context.Context, tried <-chan struct{}) {
	if tried != nil {
		select {
		case <-tried:
		case <-ctx.Done():
			return
		}
	}
	for o.lacksRights() {
		select {
		case <-time.After(refusedRetry):
		case <-ctx.Done():
			return
		}
	}
	o.manager.PackagesLoaded()
}

// brokenLast ranks packages for sorting: broken ones come last.
func brokenLast(a firstLoad) int {
	if a.err != nil {
		return 1
	}
	return 0
}

// loadAll loads packages concurrently. The channel gets one result for each folder.
func (o *operator) loadAll(ctx context.Context, dirs []string) <-chan firstLoad {
	loads := make(chan firstLoad, len(dirs))
	for _, dir := range dirs {
		go func() {
			a := firstLoad{dir: dir}
			snapshot, err := o.loader.Folder(dir)
			a.state = source.Fingerprint(snapshot, err)
			if err != nil {
				a.err = folderFault(dir, err)
			} else {
				a.checkedPackage, a.err = o.examiner.checkAndCompile(ctx, snapshot, examineAll)
			}
			if a.err != nil {
				a.lastGood = o.loadLastGood(ctx, dir)
			}
			loads <- a
		}()
	}
	return loads
}

// minWorkers is how many packages are checked concurrently at least, even on a machine with
// fewer processors: a worker may only be running into its timeout.
const minWorkers = 4

// collectLoads returns the packages that are loaded within startupGrace, sorted by folder.
func collectLoads(loads <-chan firstLoad, n int) []firstLoad {
	var out []firstLoad
	grace := time.NewTimer(startupGrace)
	defer grace.Stop()
	for expired := false; len(out) < n && !expired; {
		select {
		case a := <-loads:
			out = append(out, a)
		case <-grace.C:
			expired = true
		}
	}
	slices.SortFunc(out, func(a, b firstLoad) int { return strings.Compare(a.dir, b.dir) })
	return out
}

// checkKindsUnique errors if two packages serve the same kind.
func checkKindsUnique(packages []firstLoad) error {
	by := map[schema.GroupKind]string{}
	for _, a := range packages {
		if a.err != nil {
			continue
		}
		kind := a.program.GroupVersionKind().GroupKind()
		if other, taken := by[kind]; taken {
			return &controller.TakenError{Kind: kind, By: other, Package: controller.Describe(a.program)}
		}
		by[kind] = controller.Describe(a.program)
	}
	return nil
}

// serveFirst serves a package for the first time, or the last good version of a broken one, and
// returns how its folder is watched from then on. It returns an error only if the
// cause is not the package: such an error ends the process, as it would affect every package.
func (o *operator) serveFirst(ctx context.Context, a firstLoad) (*folderWatch, error) {
	w := &folderWatch{operator: o, dir: a.dir, state: a.state, checked: a.checkedPackage}
	err := a.err
	if err == nil {
		err = o.serve(ctx, a.dir, a.checkedPackage, nil)
	}
	switch {
	case err == nil:
		w.served = a.program
		return w, nil
	case a.err == nil && apierrors.IsForbidden(err):
		w.lacks(err)
		return w, nil
	case a.err == nil && !isPackageFault(err):
		return nil, err
	case a.err == nil:
		a.lastGood = o.loadLastGood(ctx, a.dir)
	default:
		w.checked = checkedPackage{}
	}
	w.lastGood, w.fault = &a.lastGood, err
	w.tryLastGood(ctx)
	o.reportBroken(ctx, a.dir, w.served, err)
	if w.served == nil && ctx.Err() == nil {
		o.manager.ReportBroken(a.dir, packageName(a.dir), faultLocation(err))
	}
	return w, nil
}

// isPackageFault reports whether an error of serve is caused by the content of the package.
func isPackageFault(err error) bool {
	_, taken := errors.AsType[*controller.TakenError](err)
	_, names := errors.AsType[*namesTakenError](err)
	return taken || names || apierrors.IsInvalid(err)
}

// serve installs the CustomResourceDefinition of a package and serves the package, in place of
// the running version, if any. It retries while the API server cannot be reached.
func (o *operator) serve(ctx context.Context, dir string, next checkedPackage, running *program.Program) error {
	if err := o.checkKindFree(next.program, running); err != nil {
		return err // before its definition would take the place of the one that is served
	}
	account := o.actAs(next.program)
	if err := o.installDefinition(ctx, crd.WithAccount(next.crd, account.String())); err != nil {
		return err
	}
	for _, w := range next.warnings {
		o.log.Info("the package has a warning", "package", next.program.Name(), "warning", w.Error())
	}
	if err := o.serveOrSwap(ctx, next.program, running); err != nil {
		return err
	}
	o.mu.Lock()
	delete(o.broken, dir)
	delete(o.refused, dir)
	o.mu.Unlock()
	o.manager.ReportRepaired(dir, next.program.GroupVersionKind().GroupKind().String())
	o.saveLastGood(dir, next.snapshot)
	return nil
}

// actAs says as whom a package of a folder is served.
func (o *operator) actAs(p *program.Program) object.Account {
	account := o.flags.accounts[p.Name()]
	o.manager.ActAs(p.GroupVersionKind().GroupKind(), account)
	return account
}

// checkKindFree errors if another package serves the kind of a package.
func (o *operator) checkKindFree(p, running *program.Program) error {
	kind := p.GroupVersionKind().GroupKind()
	if running != nil && running.GroupVersionKind().GroupKind() == kind {
		return nil
	}
	if by := o.manager.ServedBy(kind); by != "" {
		return &controller.TakenError{Kind: kind, By: by, Package: controller.Describe(p)}
	}
	return nil
}

// serveOrSwap makes the manager serve a package, or swap it for the running version, if any.
func (o *operator) serveOrSwap(ctx context.Context, p, running *program.Program) error {
	switch {
	case running == nil:
		if err := o.manager.Serve(p); err != nil {
			return err
		}
		o.log.Info("package loaded", "package", p.Name(), "kind", p.GroupVersionKind().GroupKind().String(), "version", p.GroupVersionKind().Version, "digest", shortDigest(p.Digest()))
	case running.Digest() == p.Digest():
		// The CRD was applied nevertheless, because the cluster may have the one of a version in between.
		if err := o.manager.ReportOutdated(ctx, running, ""); err != nil {
			return err
		}
		o.log.Info("the package is unchanged again, the same version keeps running", "package", p.Name(), "digest", shortDigest(p.Digest()))
	default:
		if err := o.manager.Swap(ctx, running, p); err != nil {
			return err
		}
		o.log.Info("package replaced", "package", p.Name(), "was", shortDigest(running.Digest()), "now", shortDigest(p.Digest()))
	}
	return nil
}

// ready errors until every package has been served once and, with webhooks, each Package of the start has been tried. A Deployment that
// replaces a pod waits for the readiness of the new one before it ends the old one, so a process is ready, too, while it waits for a
// definition that is installed only once the old one ends. It is not while a permission is missing for what has to be done at the start.
func (o *operator) ready() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.refused) > 0:
		what := slices.Min(slices.Collect(maps.Keys(o.refused)))
		return fmt.Errorf("the operator lacks a permission for %s: %w", what, o.refused[what])
	case o.waiting > 0:
		return nil
	case len(o.broken) == 0 && !isOpen(o.begun):
		return nil
	case len(o.broken) == 0:
		return errors.New("the Packages of the cluster have not been tried yet, and webhooks need them")
	}
	return fmt.Errorf("packages not served yet: %s", strings.Join(slices.Sorted(maps.Keys(o.broken)), ", "))
}

// isOpen reports whether a channel, which may be nil, is still to be closed.
func isOpen(c <-chan struct{}) bool {
	if c == nil {
		return false
	}
	select {
	case <-c:
		return false
	default:
		return true
	}
}
