// Command mutate measures how much the tests of some packages notice. It changes one place
// of the source at a time, as a slip would, and runs the tests: a change that they let pass
// is printed with its place, for whoever wants to write the test that is missing.
//
//	go run ./test/mutate                          300 changes over the three packages
//	go run ./test/mutate -n 50 -seed 7 rollout    others, of one of them
//
// The source itself is never touched: the compiler reads the changed file in the place of the
// original one (go build -overlay). The changes are drawn by the seed, so that a run can be
// repeated, and those that do not compile are replaced by others. It exits with 1 if fewer
// than -min percent were noticed.
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
	"sync"
	"time"
)

// A subject is a package whose tests are measured.
type subject struct {
	name string
	// judges are the packages whose tests may notice a change, the quick ones first.
	judges []string
}

// subjects are the packages that decide what is written, and what is deleted.
var subjects = []subject{
	{"ownership", []string{"./engine/ownership", "./engine/rollout", "./engine/reconcile"}},
	{"rollout", []string{"./engine/rollout", "./engine/reconcile"}},
	{"reconcile", []string{"./engine/reconcile", "./engine/dryrun", "./engine/controller"}},
}

var errTooFew = errors.New("too few changes were noticed")

func main() {
	n := flag.Int("n", 300, "number of changes")
	seed := flag.Uint64("seed", 1, "what the changes are drawn by")
	atLeast := flag.Int("min", 85, "percentage of changes that the tests have to notice")
	workers := flag.Int("p", 2, "changes that are tried at the same time")
	flag.Parse()
	if err := run(*n, *seed, *atLeast, *workers, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(n int, seed uint64, atLeast, workers int, names []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	sites, err := sitesOf(names)
	if err != nil {
		return err
	}
	draw := rand.New(rand.NewPCG(seed, 0))
	draw.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	fmt.Printf("%d changes of %d possible ones, seed %d\n", min(n, len(sites)), len(sites), seed)
	started := time.Now()
	s := &score{want: n}
	var all sync.WaitGroup
	next := make(chan site)
	for range workers {
		all.Go(func() {
			for one := range next {
				verdict, by := try(ctx, one)
				s.add(one, verdict, by)
			}
		})
	}
	for _, one := range sites {
		if s.full() || ctx.Err() != nil {
			break
		}
		next <- one
	}
	close(next)
	all.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.print(time.Since(started), atLeast)
}

// sitesOf returns all changes that can be made to some subjects, or to all.
func sitesOf(names []string) ([]site, error) {
	var out []site
	for _, s := range subjects {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		found, err := find(s)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is nothing to change in %q; the packages are ownership, rollout and reconcile", names)
	}
	return out, nil
}

// score counts what became of the changes.
type score struct {
	mu     sync.Mutex
	want   int
	killed map[string]int
	tried  map[string]int
	done   int
	passed []site
}

// full reports whether enough changes were tried.
func (s *score) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done >= s.want
}

// add records one change and prints it.
func (s *score) add(one site, v verdict, by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v == invalid || s.done >= s.want {
		return
	}
	if s.killed == nil {
		s.killed, s.tried = map[string]int{}, map[string]int{}
	}
	s.done++
	s.tried[one.subject.name]++
	if v == noticed {
		s.killed[one.subject.name]++
	} else {
		s.passed = append(s.passed, one)
	}
	fmt.Printf("%4d/%d %-8s %s %s\n", s.done, s.want, v, one, by)
}

// print sums up.
func (s *score) print(took time.Duration, atLeast int) error {
	slices.SortFunc(s.passed, site.compare)
	fmt.Printf("\nnot noticed:\n")
	for _, one := range s.passed {
		fmt.Printf("  %s\n", one)
	}
	fmt.Println()
	killed := 0
	for _, p := range subjects {
		if s.tried[p.name] > 0 {
			fmt.Printf("%-10s %3d of %3d noticed\n", p.name, s.killed[p.name], s.tried[p.name])
			killed += s.killed[p.name]
		}
	}
	fmt.Printf("%-10s %3d of %3d noticed: %d %% in %s\n", "all", killed, s.done, 100*killed/max(s.done, 1), took.Round(time.Second))
	if 100*killed < atLeast*s.done {
		return errTooFew
	}
	return nil
}
