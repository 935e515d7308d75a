package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"operetta.dev/test/internal/screen"
)

const (
	// fuzzTime is how long a fuzz target is fed in a test of everything: long enough to meet what
	// its corpus almost has. Whoever changes a decoder gives it more.
	fuzzTime = "20s"
	// fuzzTwo is how many run at once, each on one processor.
	fuzzTwo = 2
)

// A fuzzTarget is a fuzz test of a package.
type fuzzTarget struct{ pkg, name, dir string }

// fuzzRun feeds every fuzz target of a module for some time.
type fuzzRun struct{ module string }

// run is the run itself.
func (r fuzzRun) run(ctx context.Context, s *screen.Screen, step *screen.Step) (tally, error) {
	targets, err := r.targets(ctx)
	if err != nil {
		return tally{}, err
	}
	var mu sync.Mutex
	var got tally
	var all sync.WaitGroup
	slots := make(chan struct{}, fuzzTwo)
	for i, target := range targets {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			step.Detail(fmt.Sprintf("%d of %d targets; %s", i+1, len(targets), target.name))
			said, err := r.feed(ctx, target)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				got.failed++
				s.Print(strings.Split(said, "\n")...)
				s.Print(fmt.Sprintf("✗ %s of %s: %v", target.name, target.pkg, err))
				return
			}
			got.passed++
			s.Print(fmt.Sprintf("ok  \t%s\t%s\t%d executions", target.pkg, target.name, executions(said)))
		})
	}
	all.Wait()
	if got.failed > 0 {
		return got, errFailed
	}
	return got, ctx.Err()
}

// feed runs one target, and returns what go test said. What it found is a new file of its
// corpus; where there is none, Go's own clock has cut an execution off, which is no fault of
// the target, and it is run again.
func (r fuzzRun) feed(ctx context.Context, target fuzzTarget) (string, error) {
	const tries = 2
	corpus := filepath.Join(target.dir, "testdata", "fuzz", target.name)
	for try := 1; ; try++ {
		before := filesIn(corpus)
		cmd := goTool(ctx, "-C", r.module, "test", "-run=^$", "-fuzz=^"+target.name+"$", "-fuzztime="+fuzzTime, "-fuzzminimizetime=50x", "-parallel=1", target.pkg)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err == nil || try == tries || ctx.Err() != nil || !errors.As(err, &exit) || filesIn(corpus) != before {
			return strings.TrimSpace(string(out)), err
		}
	}
}

// filesIn returns how many files a folder has.
func filesIn(dir string) int {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return -1
	}
	return len(entries)
}

// executed is how go test says how often it ran a target.
var executed = regexp.MustCompile(`execs: (\d+)`)

// executions returns how often go test says that it ran a target.
func executions(said string) int {
	all := executed.FindAllStringSubmatch(said, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1][1])
	return n
}

// fuzzTest begins a fuzz test.
var fuzzTest = regexp.MustCompile(`(?m)^func Fuzz`)

// targets lists the fuzz targets. Only packages that seem to have some are compiled to be asked.
func (r fuzzRun) targets(ctx context.Context) ([]fuzzTarget, error) {
	dirs := map[string]string{}
	packages, err := testRun{module: r.module, wanted: func(p listedPackage) bool {
		for _, file := range append(p.TestGoFiles, p.XTestGoFiles...) {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err == nil && fuzzTest.Match(text) {
				dirs[p.ImportPath] = p.Dir
				return true
			}
		}
		return false
	}}.packages(ctx)
	if err != nil {
		return nil, err
	}
	var out []fuzzTarget
	for _, pkg := range packages {
		var said, complaint bytes.Buffer
		cmd := goTool(ctx, "-C", r.module, "test", "-list=^Fuzz", pkg)
		cmd.Stdout, cmd.Stderr = &said, &complaint
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("listing the fuzz targets of %s: %w: %s%s", pkg, err, said.Bytes(), complaint.Bytes())
		}
		for line := range strings.Lines(said.String()) {
			if name := strings.TrimSpace(line); strings.HasPrefix(name, "Fuzz") {
				out = append(out, fuzzTarget{pkg, name, dirs[pkg]})
			}
		}
	}
	return out, nil
}
