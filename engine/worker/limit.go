package worker

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"time"
)

// The exit codes of a worker that ends itself, besides those of the commands. A worker watches its
// own limits because Go exits with the same code whether a process runs out of stack or of memory.
const (
	ExitMemory   = 80 + iota // the worker exceeded its memory limit
	ExitStack                // the worker exceeded its stack limit
	ExitOrphaned             // the parent process is gone
	ExitTime                 // the worker exceeded its processor time
)

const (
	// exitStackSize is the limit of the stack of a worker, in bytes, which is what messages say: a worker that has more
	// exits by itself. Ordinary packages need less than 1.3 MiB.
	exitStackSize = maxStack / 4
	// maxStack is where Go ends a worker whose stack grows faster than the guard looks. That limit has to be higher, because Go
	// exits with the same code whether a process runs out of stack or of memory; and Go's default of 1 GB can exhaust the
	// memory of the machine.
	maxStack = 128 << 20
)

// Limits are the limits of one worker.
type Limits struct {
	// Memory is in bytes.
	Memory int64
	// Time is processor time: a worker that is stopped or starved uses none. It is for everything
	// that an examining worker does, and for each evaluation of an evaluating one.
	Time time.Duration
}

// Arguments returns the limits as arguments of a command.
func (l Limits) Arguments() []string {
	return []string{strconv.FormatInt(l.Memory, 10), l.Time.String()}
}

// ParseLimits parses what Arguments returns.
func ParseLimits(memory, processorTime string) (Limits, error) {
	var l Limits
	var err error
	if l.Memory, err = strconv.ParseInt(memory, 10, 64); err != nil {
		return Limits{}, fmt.Errorf("%q is not a number of bytes", memory)
	}
	if l.Time, err = time.ParseDuration(processorTime); err != nil {
		return Limits{}, fmt.Errorf("%q is not a duration", processorTime)
	}
	return l, nil
}

// shortGarbage is GOGC for a process that ends soon, or that builds what it keeps: collecting garbage would be a quarter of
// its work. The limit of memory holds as ever, and near it Go collects more often.
const shortGarbage = 400

// LimitProcess limits the memory, the stack and the processor time of this process, which does one thing and ends. At a
// limit the process exits.
func LimitProcess(l Limits) error {
	ReduceGC()
	g, err := guardMemory(l.Memory)
	if err == nil {
		g.begin(l.Time)
	}
	return err
}

// ExitWithParent ends this process when its parent ends, which closes the pipe. Without it, a worker
// in an endless loop would outlive a parent that was killed.
func ExitWithParent(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	os.Exit(ExitOrphaned)
}

// runtimeReserve is how much memory Go's runtime maps besides the heap, in bytes.
const runtimeReserve = 256 << 20

// A guard ends this process when it exceeds a limit. It looks only while something is done.
type guard struct {
	memory uint64
	// deadline is a processor time, in nanoseconds.
	deadline atomic.Int64
	ticker   *time.Ticker
}

// ReduceGC makes Go collect garbage less often, and returns a function that makes it collect as often as before.
func ReduceGC() (asBefore func()) {
	before := debug.SetGCPercent(shortGarbage)
	if before < 0 || before > shortGarbage {
		debug.SetGCPercent(before) // whoever set GOGC wants that
	}
	return func() { debug.SetGCPercent(before) }
}

// niceness is how much is added to the nice value of a worker: where the processors are busy, it gets a third of what the operator
// gets. With more, an evaluation that needs a second would take longer by the clock than it may.
const niceness = 5

// guardMemory limits the memory and the stack of this process, and lowers its priority. From seven eighths of the memory on, Go
// collects garbage more often. If the process grows too fast to notice, the system refuses memory beyond
// twice the limit.
func guardMemory(bytes int64) (*guard, error) {
	lowerPriority()
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(bytes / 8 * 7)
	if err := limitDataSegment(2*bytes + runtimeReserve); err != nil {
		return nil, fmt.Errorf("limiting the memory of a worker: %w", err)
	}
	g := &guard{memory: uint64(max(bytes, 0)), ticker: time.NewTicker(watchInterval)}
	g.ticker.Stop()
	go g.watch()
	return g, nil
}

// begin limits what is done from now on to a processor time.
func (g *guard) begin(t time.Duration) {
	g.deadline.Store(int64(ProcessorTime() + t))
	g.ticker.Reset(watchInterval)
}

// end stops looking.
func (g *guard) end() { g.ticker.Stop() }

// watch ends this process when it exceeds a limit.
func (g *guard) watch() {
	for range g.ticker.C {
		m := memoryNow()
		switch {
		case m.stacks > exitStackSize:
			os.Exit(ExitStack)
		case m.used > g.memory:
			os.Exit(ExitMemory)
		case int64(ProcessorTime()) > g.deadline.Load():
			os.Exit(ExitTime)
		}
	}
}

// memory is how much memory this process uses, in bytes.
type memory struct {
	// used is what the system has given and not got back, stacks are a part of it, and live is what
	// the last garbage collection has kept.
	used, stacks, live uint64
}

// memoryNow returns how much memory this process uses now.
func memoryNow() memory {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	total, released := samples[0].Value.Uint64(), samples[1].Value.Uint64()
	return memory{used: total - min(total, released), stacks: samples[2].Value.Uint64(), live: samples[3].Value.Uint64()}
}
