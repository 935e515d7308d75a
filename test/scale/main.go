// Command scale measures what controllers cost with many resources, on a real control
// plane on this machine: operetta with the packages of this repository, and the operator of
// test/scale/handwritten, which makes the same objects. It is what `make bench-scale` runs.
//
// Each controller is a process of its own on a control plane of its own, one after the other,
// with the same resources. The processor time and memory of its workers count, and its start
// does not. Times on a shared machine are noise to some part, so what is compared is measured
// in one run.
//
//	main ──> bench (scenarios, edit, small) ──> plane (cluster), process (controller)
//	     ──> results (table, plot)
//
// It reads /proc, and so runs on Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"operetta.dev/test/internal/binary"
	"operetta.dev/test/internal/screen"
)

// binDir has the controllers and the results.
var binDir = filepath.Join("bin", "scale")

// The names of scenarios that are none of a controller: all of them, and what is measured in memory.
const (
	scenarioAll    = "all"
	scenarioGrowth = "growth"
)

// options are the command line.
type options struct {
	n                                    int
	scenarios, controllers               string
	results, document, picture, profiles string
	timeout                              time.Duration
}

func main() {
	if err := measureAll(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// measureAll does what the command line asks for.
func measureAll() error {
	var o options
	flag.IntVar(&o.n, "n", 50, "how many resources")
	flag.StringVar(&o.scenarios, "scenario", "chain,idle,create,unchanged,restart,edit,users", "what is measured, separated by commas; the default takes a few minutes; all is that and children, fleet, rest and growth")
	flag.StringVar(&o.controllers, "controller", "", "which controllers, separated by commas; all by default")
	flag.StringVar(&o.results, "results", filepath.Join(binDir, "results.jsonl"), "file to which the results are appended")
	flag.StringVar(&o.document, "markdown", "", "file for the table in Markdown")
	flag.StringVar(&o.picture, "plot", "", "file for a plot as PNG")
	flag.StringVar(&o.profiles, "profile", "", "folder for a profile of each scenario; the programs are built for that, and their times are not comparable")
	flag.DurationVar(&o.timeout, "timeout", time.Hour, "how long it may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The first signal ends everything in order, a second one at once.
	context.AfterFunc(ctx, stop)
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	s := screen.New(os.Stdout)
	r, err := run(ctx, o, s)
	if len(r.all) > 0 {
		s.Print(text(r.rows())...)
		err = errors.Join(err, o.write(r))
	}
	s.Close()
	return err
}

// write saves the results.
func (o options) write(r *results) error {
	err := r.save(o.results)
	if o.document != "" {
		err = errors.Join(err, os.WriteFile(o.document, []byte(markdown(r.rows())), 0o644))
	}
	if o.picture != "" {
		err = errors.Join(err, r.plot(o.picture))
	}
	return err
}

// run measures everything that is asked for. It returns what it has measured also with an error.
func run(ctx context.Context, o options, s *screen.Screen) (*results, error) {
	r := &results{run: time.Now().UTC().Truncate(time.Second), commit: commit(ctx), n: o.n}
	selected, err := selectScenarios(o.scenarios)
	if err != nil {
		return r, err
	}
	all, err := selectContestants(o.controllers)
	if err != nil {
		return r, err
	}
	if slices.Contains(strings.Split(o.scenarios, ","), scenarioGrowth) || o.scenarios == scenarioAll {
		step := s.Start("growth: resources in memory")
		err := growth(ctx, r, step.Detail)
		step.End(err, "")
		if err != nil {
			return r, err
		}
	}
	if len(selected) == 0 {
		return r, nil
	}
	step := s.Start("build")
	err = o.build(ctx)
	step.End(err, "")
	if err != nil {
		return r, err
	}
	for _, c := range all {
		if err := measure(ctx, o, s, r, c, selected); err != nil {
			return r, err
		}
	}
	return r, nil
}

// measure measures one controller on a control plane of its own.
func measure(ctx context.Context, o options, s *screen.Screen, r *results, c contestant, selected []scenario) error {
	dir, err := os.MkdirTemp("", "operetta-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	packages, err := writePackages(dir)
	if err != nil {
		return err
	}
	step := s.Start(c.name + ": start a control plane")
	p, err := startPlane(ctx, o.n, dir, filepath.Join(binDir, nameOperetta), packages)
	step.End(err, "")
	if err != nil {
		return err
	}
	defer func() { _ = p.Stop() }()
	b := &bench{contestant: c, plane: p, screen: s, results: r, n: o.n, profiles: o.profiles}
	if b.kubeconfig, err = p.KubeconfigFor(b.user(), "system:masters"); err != nil {
		return err
	}
	return b.run(ctx, selected)
}

// writePackages writes the packages of all kinds, of which the definitions are installed.
func writePackages(dir string) ([]string, error) {
	var out []string
	for _, kind := range kinds {
		at := filepath.Join(dir, "definitions")
		if _, err := preparePackage(at, serving(kind)); err != nil {
			return nil, err
		}
		out = append(out, packageDir(at, kind))
	}
	return out, nil
}

// build builds the controllers.
func (o options) build(ctx context.Context) error {
	for name, from := range map[string]string{nameOperetta: "./cmd/operetta", nameHandwritten: "./test/scale/handwritten"} {
		args := slices.Concat([]string{"build", "-o", filepath.Join(binDir, name)}, binary.Flags)
		if o.profiles != "" {
			flag, err := overlay(filepath.Join(o.profiles, name), from)
			if err != nil {
				return err
			}
			args = append(args, flag)
		}
		cmd := exec.CommandContext(ctx, "go", append(args, from)...)
		cmd.Env = append(os.Environ(), binary.Environment...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w: %s", from, err, out)
		}
	}
	return nil
}

// commit returns the commit that is measured, or nothing if there is none.
func commit(ctx context.Context) string {
	out, _ := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	return strings.TrimSpace(string(out))
}

// selectScenarios returns the scenarios with names, in their order, with those that they need.
func selectScenarios(names string) ([]scenario, error) {
	if names == scenarioAll {
		return scenarios, nil
	}
	wanted := slices.DeleteFunc(strings.Split(names, ","), func(name string) bool { return name == scenarioGrowth })
	for _, name := range wanted {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
	}
	for _, name := range wanted {
		wanted = append(wanted, needed[name]...)
	}
	return slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !slices.Contains(wanted, s.name) }), nil
}

// selectContestants returns the controllers with names; all if there are none.
func selectContestants(names string) ([]contestant, error) {
	all := contestants()
	if names == "" {
		return all, nil
	}
	var out []contestant
	for name := range strings.SplitSeq(names, ",") {
		at := slices.IndexFunc(all, func(c contestant) bool { return c.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no controller %q", name)
		}
		out = append(out, all[at])
	}
	return out, nil
}
