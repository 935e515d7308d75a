package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	switches "operetta.dev/test/mutate/mutant"
)

// A verdict is the result of running the tests on a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "SURVIVED"
	// unreached is the verdict on a mutant that no test executes. It survives.
	unreached verdict = "UNREACHED"
)

// A test is a test function of a package.
type test struct {
	pkg, name string
	took      time.Duration // without a mutant
}

// reach has the tests that reach the place of each mutant, the quickest first.
type reach map[int][]test

// measure runs each test alone, without a mutant. It errors if one fails: it would seem to kill every
// mutant.
func (b *binaries) measure(ctx context.Context, chosen []target) (reach, error) {
	out := reach{}
	for _, pkg := range testPackages(chosen) {
		listed, err := b.command(ctx, pkg, "-test.list=^(Test|Example)").Output()
		if err != nil {
			return nil, fmt.Errorf("listing the tests of %s: %w", pkg, err)
		}
		for name := range strings.FieldsSeq(string(listed)) {
			if err := b.measureOne(ctx, test{pkg: pkg, name: name}, out); err != nil {
				return nil, err
			}
		}
	}
	for _, tests := range out {
		slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	}
	return out, nil
}

// measureOne runs one test and adds it to the mutants that it reaches.
func (b *binaries) measureOne(ctx context.Context, t test, out reach) error {
	file := filepath.Join(b.dir, "reached")
	if err := os.RemoveAll(file); err != nil {
		return err
	}
	cmd := b.command(ctx, t.pkg, "-test.run=^"+t.name+"$")
	cmd.Env = append(cmd.Env, switches.ReachedVariable+"="+file)
	began := time.Now()
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s of %s without any mutant: %w\n%s", t.name, t.pkg, err, said)
	}
	t.took = time.Since(began)
	content, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	lines := bufio.NewScanner(content)
	for lines.Scan() {
		id, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		out[id] = append(out[id], t)
	}
	return lines.Err()
}

// A batch is the tests of one package that run in one process.
type batch struct {
	pkg   string
	tests []test
}

// quick is how long the first batch of a package takes at the most: most mutants do not survive it.
const quick = 2 * time.Second

// batches returns the tests that may kill a mutant as processes, those first that take little time.
func (r reach) batches(m mutant, order []string) []batch {
	var first, second []batch
	for _, pkg := range order {
		var sum time.Duration
		var short, long []test
		for _, t := range r[m.id] {
			if t.pkg != pkg {
				continue
			}
			if sum += t.took; sum <= quick || len(short) == 0 {
				short = append(short, t)
			} else {
				long = append(long, t)
			}
		}
		if len(short) > 0 {
			first = append(first, batch{pkg, short})
		}
		if len(long) > 0 {
			second = append(second, batch{pkg, long})
		}
	}
	slices.SortStableFunc(first, func(a, b batch) int { return cmp.Compare(a.tests[0].took, b.tests[0].took) })
	return append(first, second...)
}

// pattern returns the pattern of test names that matches the tests of a batch.
func (b batch) pattern() string {
	var names []string
	for _, t := range b.tests {
		names = append(names, regexp.QuoteMeta(t.name))
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// timeout is how long the tests of a batch may take with a mutant, which may loop or wait forever: five
// times as long as without it, and at least a minute.
func (b batch) timeout() time.Duration {
	var sum time.Duration
	for _, t := range b.tests {
		sum += t.took
	}
	return max(5*sum, time.Minute)
}

// try runs the tests that reach a mutant, and returns which package's tests killed it. It errors if they
// could not be run.
func (b *binaries) try(ctx context.Context, m mutant, batches []batch) (v verdict, by string, err error) {
	for _, c := range batches {
		cmd := b.command(ctx, c.pkg, "-test.failfast", "-test.run="+c.pattern(), "-test.timeout="+c.timeout().String())
		cmd.Env = append(cmd.Env, switches.Variable+"="+strconv.Itoa(m.id))
		err := cmd.Run()
		if cmd.Process != nil { // an interrupt before it starts leaves none
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what a test has left running
		}
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		if _, failed := errors.AsType[*exec.ExitError](err); failed {
			return killed, "by " + c.pkg, nil
		}
		if err != nil {
			return "", "", err
		}
	}
	if len(batches) == 0 {
		return unreached, "", nil
	}
	return survived, "", nil
}

// command returns a command that runs the tests of a package in its folder, with the lowest priority, as a
// run takes many minutes on a machine with other work. A mutant may ask for memory forever: it gets 8 GiB.
func (b *binaries) command(ctx context.Context, pkg string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v 8388608; exec nice -n 19 "$0" "$@"`, b.path(pkg)}, args...)...)
	cmd.Dir = filepath.Join(b.root, pkg)
	cmd.Env = append(os.Environ(), "GOGC=400") // there is memory for less work
	// The tests start processes, which have to end with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
