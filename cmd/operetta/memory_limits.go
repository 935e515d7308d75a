package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxWorkerMemory is the memory limit of a worker if this process has none, in bytes, and
	// minWorkerMemory is the least that a worker gets. The largest known packages need 90 MiB.
	maxWorkerMemory = 1 << 30
	minWorkerMemory = 128 << 20
)

// workerLimits are the limits of the workers of this process.
type workerLimits struct {
	// memory is the memory limit of each worker, in bytes.
	memory int64
	// slots is how many workers may run concurrently.
	slots int
}

// examineShare is the part of the memory of this process that workers which examine packages may take.
const examineShare = 4

// workerLimitsFor returns the limits of workers in a process with a memory limit, or with none if
// available is 0. A requested limit of a worker other than 0 is used as it is.
func workerLimitsFor(available, requested int64) workerLimits {
	slots := max(minWorkers, runtime.GOMAXPROCS(0))
	l := workerLimits{memory: requested, slots: slots}
	if available == 0 {
		if requested == 0 {
			l.memory = maxWorkerMemory
		}
		return l
	}
	share := available / examineShare
	if requested == 0 {
		l.memory = max(minWorkerMemory, min(share, maxWorkerMemory))
	}
	l.slots = int(max(1, min(int64(slots), share/l.memory)))
	return l
}

// all returns the memory of all these workers together, in bytes.
func (l workerLimits) all() int64 { return int64(l.slots) * l.memory }

// limitHeap makes Go collect garbage more often when this process uses most of the memory of its control
// group, instead of exceeding it. What workers may take is left to them, up to three quarters.
// GOGC stays as it is: 200 saves no measurable processor time and costs a third of the heap, 50 the reverse.
func limitHeap(available, reserved int64) {
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set && available > 0 {
		debug.SetMemoryLimit(max(available-reserved, available/4))
	}
}

// availableMemory returns the memory limit of the control group of this process, in bytes, or 0 if
// it has none.
func availableMemory() int64 { return cgroupMemoryLimit("/proc/self/cgroup", "/sys/fs/cgroup") }

// cgroupMemoryLimit returns the lowest memory limit of the control groups that a file such as
// /proc/self/cgroup names, of version 1 or 2, and of the groups above them. In a container the names
// may belong to a tree that is not mounted; the mounted root is then the group of the container.
func cgroupMemoryLimit(cgroupFile, root string) int64 {
	text, err := os.ReadFile(cgroupFile)
	if err != nil {
		return 0
	}
	lowest := int64(0)
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		tree, file := root, "memory.max"
		switch {
		case fields[1] == "memory":
			tree, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		case fields[0] != "0":
			continue
		}
		for at := filepath.Clean("/" + fields[2]); ; at = filepath.Dir(at) {
			if limit := readLimit(filepath.Join(tree, at, file)); limit > 0 && (lowest == 0 || limit < lowest) {
				lowest = limit
			}
			if at == "/" {
				break
			}
		}
	}
	return lowest
}

// readLimit returns the limit in a file of a control group, or 0 if there is none.
func readLimit(name string) int64 {
	// In version 1, no limit is a number that is larger than the memory of any machine.
	const none = 1 << 50
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit > none {
		return 0
	}
	return limit
}

// quantity is a flag with an amount of memory in the notation of Kubernetes.
type quantity int64

// String returns the amount, or nothing for none.
func (q *quantity) String() string {
	if *q == 0 {
		return ""
	}
	return resource.NewQuantity(int64(*q), resource.BinarySI).String()
}

// Set sets the amount. It errors if the text is not a quantity, or less than minWorkerMemory.
func (q *quantity) Set(s string) error {
	parsed, err := resource.ParseQuantity(s)
	if err != nil {
		return fmt.Errorf("write an amount of memory, such as 512Mi")
	}
	if parsed.Value() < minWorkerMemory {
		return fmt.Errorf("write at least %dMi", minWorkerMemory>>20)
	}
	*q = quantity(parsed.Value())
	return nil
}

// Type names the value in the help.
func (q *quantity) Type() string { return "quantity" }
