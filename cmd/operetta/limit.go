package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The exit codes of a worker that ends itself, besides those of the commands. A worker watches its
// own limits because Go exits with the same code whether a process runs out of stack or of memory.
const (
	exitMemory   = 80 + iota // the worker exceeded its memory limit
	exitStack                // the worker exceeded its stack limit
	exitOrphaned             // the parent process is gone
	exitTime                 // the worker exceeded its processor time
)

const (
	// maxStack is Go's limit of the stack of a worker, in bytes. Ordinary packages need less than a
	// hundredth of it; Go's default of 1 GB can exhaust the memory of the machine.
	maxStack = 128 << 20
	// exitStackSize is the stack size at which a worker exits by itself, before Go ends it.
	exitStackSize = maxStack / 4
)

// limits are the limits of one worker.
type limits struct {
	// memory is in bytes.
	memory int64
	// time is processor time: a worker that is stopped or starved uses none.
	time time.Duration
}

// limitProcess limits the memory, the stack and the processor time of this process. From seven
// eighths of the memory on, Go collects garbage more often. At a limit the process exits. If it
// grows too fast to notice, the system refuses memory beyond twice the limit.
func limitProcess(l limits) error {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(l.memory / 8 * 7)
	if err := limitDataSegment(2*l.memory + runtimeReserve); err != nil {
		return fmt.Errorf("limiting the memory of a worker: %w", err)
	}
	go watchLimits(l.memory, processorTime()+l.time)
	return nil
}

// runtimeReserve is how much memory Go's runtime maps besides the heap, in bytes.
const runtimeReserve = 256 << 20

// watchLimits ends this process when it exceeds a limit. deadline is a processor time.
func watchLimits(memory int64, deadline time.Duration) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	for range time.Tick(watchInterval) {
		metrics.Read(samples)
		total, released, stacks := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
		switch {
		case stacks > exitStackSize:
			os.Exit(exitStack)
		case total-min(total, released) > uint64(max(memory, 0)):
			os.Exit(exitMemory)
		case processorTime() > deadline:
			os.Exit(exitTime)
		}
	}
}
