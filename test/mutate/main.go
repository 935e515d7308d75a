// Command mutate is a mutation test: it measures how well the tests of some packages notice
// mistakes. It changes one place of the source at a time, as a slip of the author would, and runs the
// tests. It prints each mutant that the tests let pass, with its place: a test is missing there.
//
//	go run ./test/mutate                          300 mutants of the three packages
//	go run ./test/mutate -n 50 -seed 7 rollout    50 others, of one package
//
// The source itself is never touched: the compiler reads the changed file instead of the original one
// (go build -overlay). A seed draws the mutants, so that a run can be repeated. Mutants that do not
// compile are replaced by others. The command exits with 1 if the tests killed fewer than -min percent.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
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
	{"rollout", []string{"./engine/rollout", "./engine/reconcile"}},
	{"reconcile", []string{"./engine/reconcile", "./engine/dryrun", "./engine/controller"}},
}

func main() {
	var o options
	flag.IntVar(&o.mutants, "n", 300, "number of mutants")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the random choice of mutants")
	flag.IntVar(&o.minPercent, "min", 85, "percentage of mutants that the tests have to kill")
	flag.IntVar(&o.workers, "p", 2, "number of mutants that are tested at the same time")
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
	mutants, err := allMutants(chosen)
	if err != nil {
		return err
	}
	if err := testUnchanged(ctx, chosen); err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(o.seed, 0))
	rnd.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	fmt.Printf("%d of %d possible mutants, seed %d\n", min(o.mutants, len(mutants)), len(mutants), o.seed)
	started := time.Now()
	s := newScore(o.mutants)
	if err := testMutants(ctx, mutants, o.workers, s); err != nil {
		return err
	}
	return s.print(time.Since(started), o.minPercent)
}

// testMutants tests mutants concurrently until the score has enough of them. It errors if one could
// not be tested.
func testMutants(ctx context.Context, mutants []mutant, workers int, s *score) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, m := range mutants {
		if s.full() || groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			v, by, err := try(groupCtx, m)
			if err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			s.add(m, v, by)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// allMutants returns all mutants of some packages.
func allMutants(chosen []target) ([]mutant, error) {
	var out []mutant
	for _, t := range chosen {
		found, err := find(t)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// testUnchanged errors unless the tests of some packages pass without a change: tests that fail
// anyway would seem to kill every mutant.
func testUnchanged(ctx context.Context, chosen []target) error {
	var packages []string
	for _, t := range chosen {
		packages = append(packages, t.tests...)
	}
	slices.Sort(packages)
	failed, err := goTest(ctx, "", slices.Compact(packages)...)
	if err == nil && failed {
		err = errors.New("the tests fail without any change")
	}
	return err
}
