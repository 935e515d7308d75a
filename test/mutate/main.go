// Command mutate is a mutation test: it measures how well the tests of some packages notice
// mistakes. It changes one place of the source at a time, as a slip of the author would, and runs the
// tests. It prints each mutant that the tests let pass, with its place: a test is missing there.
//
//	go run ./test/mutate                          300 mutants of the three packages
//	go run ./test/mutate -n 50 -seed 7 rollout    50 others, of one package
//	go run ./test/mutate -only prune.go:          those of the 300 in one file
//
// All mutants are compiled into one set of test binaries, each behind a switch, and a process has one of
// them on. The source itself is never touched: the compiler reads changed files instead of the original
// ones (go test -overlay). Each test runs once alone to see which mutants it reaches, and a mutant gets
// only the tests that reach it. A seed draws the mutants, so that a run can be repeated. The command
// exits with 1 if the tests killed fewer than -min percent.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// A target is a package whose tests are measured.
type target struct {
	// name is the folder of the package below engine.
	name string
	// tests are the packages whose tests may kill a mutant, the quick ones first.
	tests []string
}

// targets are the packages that decide what is written and what is deleted.
var targets = []target{
	{"ownership", []string{"./engine/ownership", "./engine/rollout", "./engine/reconcile"}},
	{"rollout", []string{"./engine/rollout", "./engine/reconcile", "./engine/dryrun", "./engine/render", "./test/eval"}},
	{"reconcile", []string{"./engine/reconcile", "./engine/dryrun", "./engine/controller", "./engine/render", "./test/eval"}},
}

func main() {
	var o options
	flag.IntVar(&o.mutants, "n", 300, "number of mutants")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the random choice of mutants")
	flag.IntVar(&o.minPercent, "min", 85, "percentage of mutants that the tests have to kill")
	flag.IntVar(&o.workers, "p", 2, "number of mutants that are tested at the same time")
	flag.StringVar(&o.only, "only", "", "test only those of the mutants drawn that match a pattern, as they are printed")
	flag.Parse()
	if err := run(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	mutants, minPercent, workers int
	seed                         uint64
	only                         string
}

// run tests mutants of the packages with some names, or of all targets if there are none.
func run(o options, names []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chosen := slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		return len(names) > 0 && !slices.Contains(names, t.name)
	})
	if len(chosen) == 0 {
		return fmt.Errorf("there is no package in %q; the packages are ownership, rollout and reconcile", names)
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	started := time.Now()
	b, err := build(ctx, dir, chosen)
	if err != nil {
		return err
	}
	fmt.Printf("compiled in %s\n", time.Since(started).Round(time.Second))
	reached, err := b.measure(ctx, chosen)
	if err != nil {
		return err
	}
	fmt.Printf("all tests have run alone after %s\n", time.Since(started).Round(time.Second))
	mutants := slices.DeleteFunc(draw(b.mutants, o), func(m mutant) bool { return !only.MatchString(m.String()) })
	fmt.Printf("%d of %d possible mutants, seed %d\n", len(mutants), len(b.mutants), o.seed)
	s := &score{want: len(mutants), tried: map[string]int{}, killed: map[string]int{}}
	if err := b.testMutants(ctx, chosen, mutants, reached, o.workers, s); err != nil {
		return errors.Join(err, s.print(time.Since(started), 0)) // an interrupted run has some verdicts, too
	}
	return s.print(time.Since(started), o.minPercent)
}

// draw returns as many mutants as are wanted, in the order of their numbers.
func draw(mutants []mutant, o options) []mutant {
	rnd := rand.New(rand.NewPCG(o.seed, 0))
	rnd.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	mutants = mutants[:min(o.mutants, len(mutants))]
	slices.SortFunc(mutants, func(a, b mutant) int { return cmp.Compare(a.id, b.id) })
	return mutants
}

// testMutants tests mutants, some at the same time. It errors if one could not be tested.
func (b *binaries) testMutants(ctx context.Context, chosen []target, mutants []mutant, reached reach, workers int, s *score) error {
	order := map[string][]string{}
	for _, t := range chosen {
		order[t.name] = t.tests
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, m := range mutants {
		group.Go(func() error {
			v, by, err := b.try(ctx, m, reached.batches(m, order[m.target]))
			if err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			s.add(m, v, by)
			return nil
		})
	}
	return group.Wait()
}
