package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The exit codes of a worker that ends itself, beside those of the commands. Go ends a process
// that runs out of stack or memory with one and the same code, so a worker watches itself.
const (
	exitMemory = 80 + iota // it needs more memory than it may have
	exitStack              // it recurses deeper than it may
	exitAlone              // the process that started it is gone
	exitTime               // it was not ended in time
)

const (
	// workerStack is how deep a worker may recurse, in bytes. Honest packages stay
	// below a hundredth; Go's own limit of 1 GB takes the memory of the machine.
	workerStack = 128 << 20
	// watchedStack is where it ends itself before Go does.
	watchedStack = workerStack / 4
)

// limitSelf bounds what this process may take: memory, in bytes, stack and time. Go collects
// garbage harder from seven eighths of the memory on; the process ends itself at the limit, and
// where that is too late the system refuses more than twice as much.
func limitSelf(memory int64) error {
	debug.SetMaxStack(workerStack)
	debug.SetMemoryLimit(memory / 8 * 7)
	if err := limitData(2*memory + reserved); err != nil {
		return fmt.Errorf("limiting the memory of a worker: %w", err)
	}
	go watchSelf(memory, time.Now().Add(2*examineTimeout))
	return nil
}

// reserved is what Go's runtime maps beside the heap, in bytes.
const reserved = 256 << 20

// watchSelf ends this process when it takes more than it may.
func watchSelf(memory int64, end time.Time) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	for range time.Tick(watchEvery) {
		metrics.Read(samples)
		total, released, stacks := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
		switch {
		case stacks > watchedStack:
			os.Exit(exitStack)
		case total-min(total, released) > uint64(max(memory, 0)):
			os.Exit(exitMemory)
		case time.Now().After(end):
			os.Exit(exitTime)
		}
	}
}
