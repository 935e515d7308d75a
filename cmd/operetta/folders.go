package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// folders are the packages of folders that a process serves. Those below a pattern, such as ./..., come and go
// while it runs.
type folders struct {
	*operator

	group *errgroup.Group
	mu    sync.Mutex
	// watched ends the watch of each folder.
	watched map[string]context.CancelFunc
}

// serve serves a package for the first time and watches its folder. It errors if the cause is not the package.
func (f *folders) serve(ctx context.Context, a firstLoad) error {
	w, err := f.serveFirst(ctx, a)
	if err != nil {
		return err
	}
	watching, end := context.WithCancel(ctx)
	f.mu.Lock()
	f.watched[a.dir] = end
	f.mu.Unlock()
	f.group.Go(func() error {
		w.follow(watching)
		if ctx.Err() == nil {
			f.withdraw(ctx, a.dir, w.served)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watched, a.dir) // the folder may come again
		return nil
	})
	return nil
}

// withdraw ends the controller of a folder that is gone, if there is one.
func (f *folders) withdraw(ctx context.Context, dir string, served *program.Program) {
	const gone = "its folder is gone"
	f.operator.mu.Lock()
	delete(f.broken, dir)
	delete(f.refused, dir)
	f.operator.mu.Unlock()
	if served == nil {
		f.manager.ReportBroken(dir, packageName(dir), gone)
		return
	}
	if err := f.manager.Withdraw(ctx, served); err != nil {
		f.log.Error(err, "the folder of a package is gone, and the package could not be withdrawn", "package", served.Name(), "folder", dir)
		return
	}
	f.log.Info("package withdrawn: "+gone, "package", served.Name(), "folder", dir, "kind", served.GroupVersionKind().GroupKind().String())
}

// follow serves the packages that come below patterns, and ends those whose files go, until the context ends. It
// errors if a package cannot be served and the cause is not the package.
func (f *folders) follow(ctx context.Context, patterns []string) error {
	patterns = slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return !strings.HasSuffix(p, "...") })
	if len(patterns) == 0 {
		return nil
	}
	missing := map[string]int{}
	return lookRepeatedly(ctx, func() []string { return f.endMissing(patterns, missing) }, func(found []string) error {
		loads := f.loadAll(ctx, found) // one that takes long delays no other
		for range found {
			if err := f.serve(ctx, <-loads); err != nil {
				return err
			}
		}
		return nil
	})
}

// lookRepeatedly looks for folders, and serves those that it finds, until the context ends or serve errors. A large
// tree is read less often, so that it takes little of a processor. The time that serving takes does not count: it
// depends on the package and on the load of the machine, and folders that come or go would otherwise be noticed
// minutes later.
func lookRepeatedly(ctx context.Context, look func() []string, serve func([]string) error) error {
	for pause := foldersInterval; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		began := time.Now()
		found := look()
		pause = max(foldersInterval, foldersShare*time.Since(began))
		if err := serve(found); err != nil {
			return err
		}
	}
}

// endMissing ends the watches of folders below patterns that have had no files several times in a row: a folder that
// is replaced has none for a moment. It returns the folders of packages that are not watched yet.
func (f *folders) endMissing(patterns []string, missing map[string]int) []string {
	var found []string
	for _, p := range patterns {
		dirs, err := source.Expand([]string{p})
		if err == nil { // else there are none, or they cannot be read just now
			found = append(found, dirs...)
		}
	}
	slices.Sort(found)
	f.mu.Lock()
	defer f.mu.Unlock()
	for dir, end := range f.watched {
		if !below(patterns, dir) || !isEmpty(dir) {
			delete(missing, dir)
			continue
		}
		if missing[dir]++; missing[dir] == missingReadings {
			delete(missing, dir)
			end()
		}
	}
	return slices.DeleteFunc(slices.Compact(found), func(dir string) bool { return f.watched[dir] != nil })
}

// below reports whether a folder is at or below the root of a pattern.
func below(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		rel, err := filepath.Rel(filepath.Clean(strings.TrimSuffix(p, "...")), dir)
		return err == nil && filepath.IsLocal(rel)
	})
}

// isEmpty reports whether a folder is gone or has no CUE files. One that cannot be read is not empty.
func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return filepath.Ext(e.Name()) == ".cue" })
}
