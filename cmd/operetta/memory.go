package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// mostMemory is what a worker may have where nothing limits this process, in bytes, and
	// leastMemory what it may have in any case. The largest packages known need 90 MiB.
	mostMemory  = 1 << 30
	leastMemory = 128 << 20
)

// workerLimits are what the workers of this process may take together.
type workerLimits struct {
	// memory is that of each, in bytes.
	memory int64
	// slots is how many there may be at once.
	slots int
}

// limitsFor returns the limits of workers in a process that may have some memory, or 0 for any
// amount: half of it is for this process itself.
func limitsFor(available, wanted int64) workerLimits {
	slots := max(minSlots, runtime.GOMAXPROCS(0))
	l := workerLimits{memory: wanted, slots: slots}
	if available == 0 {
		if wanted == 0 {
			l.memory = mostMemory
		}
		return l
	}
	share := available / 2
	if wanted == 0 {
		l.memory = max(leastMemory, min(share, mostMemory))
	}
	l.slots = int(max(1, min(int64(slots), share/l.memory)))
	return l
}

// availableMemory returns what the control group of this process may have, in bytes, or 0 if
// nothing limits it.
func availableMemory() int64 { return memoryOf("/proc/self/cgroup", "/sys/fs/cgroup") }

// memoryOf returns the lowest limit of the memory of control groups: those that a list of
// /proc names, in version 1 or 2, and those above them. In a container the names may be of a
// tree that is not to be seen; the root that is mounted is then the group of the container.
func memoryOf(list, root string) int64 {
	text, err := os.ReadFile(list)
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
			if limit := limitIn(filepath.Join(tree, at, file)); limit > 0 && (lowest == 0 || limit < lowest) {
				lowest = limit
			}
			if at == "/" {
				break
			}
		}
	}
	return lowest
}

// limitIn returns the limit in a file of a control group, or 0 if there is none.
func limitIn(name string) int64 {
	// Version 1 says that there is none with a number that is larger than any machine.
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

// quantity is a flag with an amount of memory, as Kubernetes writes it.
type quantity int64

// String returns the amount, or nothing for none.
func (q *quantity) String() string {
	if *q == 0 {
		return ""
	}
	return resource.NewQuantity(int64(*q), resource.BinarySI).String()
}

// Set sets the amount. It errors when that is none, or less than a worker starts with.
func (q *quantity) Set(s string) error {
	parsed, err := resource.ParseQuantity(s)
	if err != nil {
		return fmt.Errorf("write an amount of memory, such as 512Mi")
	}
	if parsed.Value() < leastMemory {
		return fmt.Errorf("write at least %dMi", leastMemory>>20)
	}
	*q = quantity(parsed.Value())
	return nil
}

// Type names the value in the help.
func (q *quantity) Type() string { return "quantity" }
