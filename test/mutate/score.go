package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

var errTooFew = errors.New("the tests killed too few mutants")

// score counts the verdicts on mutants.
type score struct {
	mu       sync.Mutex
	want     int
	tried    map[string]int // by the name of the target
	killed   map[string]int
	done     int
	survived []mutant
}

// add records and prints one verdict.
func (s *score) add(m mutant, v verdict, by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	s.tried[m.target]++
	switch v {
	case killed:
		s.killed[m.target]++
	case unreached:
		m.change += " (no test gets there)"
		s.survived = append(s.survived, m)
	default:
		s.survived = append(s.survived, m)
	}
	fmt.Printf("%4d/%d %-9s %s %s\n", s.done, s.want, v, m, by)
}

// print prints the mutants that survived, and the totals. It errors if too few were killed.
func (s *score) print(took time.Duration, minPercent int) error {
	slices.SortFunc(s.survived, mutant.compare)
	fmt.Printf("\nsurvived:\n")
	for _, m := range s.survived {
		fmt.Printf("  %s\n", m)
	}
	fmt.Println()
	total := 0
	for _, t := range targets {
		if s.tried[t.name] > 0 {
			fmt.Printf("%-10s %3d of %3d killed\n", t.name, s.killed[t.name], s.tried[t.name])
			total += s.killed[t.name]
		}
	}
	fmt.Printf("%-10s %3d of %3d killed: %d %% in %s\n", "all", total, s.done, 100*total/max(s.done, 1), took.Round(time.Second))
	if 100*total < minPercent*s.done {
		return errTooFew
	}
	return nil
}
