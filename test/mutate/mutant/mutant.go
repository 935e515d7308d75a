// Package mutant is what mutated source calls at each place that has a mutant. A process runs with at
// most one mutant, which an environment variable names; at all other places it does what the original
// source does.
package mutant

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// The environment of a process of mutated source.
const (
	// Variable has the number of the mutant that is on; numbers begin with 1.
	Variable = "OPERETTA_MUTANT"
	// ReachedVariable has the name of a file that gets the number of each mutant whose place is reached,
	// once for each, on lines of their own.
	ReachedVariable = "OPERETTA_MUTANTS_REACHED"
)

var (
	active  = number(os.Getenv(Variable))
	reached = openReached(os.Getenv(ReachedVariable))
)

// number returns the number in a text, or 0, which no mutant has.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// record is the file of the mutants whose places were reached.
type record struct {
	file *os.File

	mu   sync.Mutex
	seen map[int]bool
}

// openReached opens the file, or returns nil if it has no name.
func openReached(name string) *record {
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return &record{file: file, seen: map[int]bool{}}
}

// add writes the number of a mutant, the first time. It allocates nothing later, because tests count allocations.
func (r *record) add(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id] {
		return
	}
	r.seen[id] = true
	if _, err := fmt.Fprintln(r.file, id); err != nil {
		panic(err)
	}
}

// On reports whether a mutant is on.
func On(id int) bool {
	if reached != nil {
		reached.add(id)
	}
	return id == active
}

// Less returns a < b, and a <= b if the mutant is on.
func Less[T cmp.Ordered](id int, a, b T) bool { return a < b || On(id) && a == b }

// LessOrEqual returns a <= b, and a < b if the mutant is on.
func LessOrEqual[T cmp.Ordered](id int, a, b T) bool { return a < b || !On(id) && a == b }

// Greater returns a > b, and a >= b if the mutant is on.
func Greater[T cmp.Ordered](id int, a, b T) bool { return a > b || On(id) && a == b }

// GreaterOrEqual returns a >= b, and a > b if the mutant is on.
func GreaterOrEqual[T cmp.Ordered](id int, a, b T) bool { return a > b || !On(id) && a == b }

// A numeric type has a difference.
type numeric interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Minus returns a - b, and a + b if the mutant is on.
func Minus[T numeric](id int, a, b T) T {
	if On(id) {
		return a + b
	}
	return a - b
}

// OneMore returns n, and n + 1 if the mutant is on.
func OneMore[T numeric](id int, n T) T {
	if On(id) {
		return n + 1
	}
	return n
}

// Longer returns a duration, and one that is a second longer if the mutant is on.
func Longer(id int, d time.Duration) time.Duration {
	if On(id) {
		return d + time.Second
	}
	return d
}
