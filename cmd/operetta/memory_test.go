package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestWorkersMayHaveHalfOfWhatThereIs(t *testing.T) {
	maxSlots := max(minWorkers, runtime.GOMAXPROCS(0))
	for name, c := range map[string]struct {
		reason            string
		available, wanted int64
		want              workerLimits
	}{
		"no limit":      {"a machine", 0, 0, workerLimits{maxWorkerMemory, maxSlots}},
		"a small one":   {"the usual container", 512 << 20, 0, workerLimits{256 << 20, 1}},
		"a tiny one":    {"less would examine nothing", 64 << 20, 0, workerLimits{minWorkerMemory, 1}},
		"a large one":   {"as many as there is room for", 6 << 30, 0, workerLimits{maxWorkerMemory, min(3, maxSlots)}},
		"wanted":        {"who says so knows it", 512 << 20, 128 << 20, workerLimits{128 << 20, min(2, maxSlots)}},
		"wanted freely": {"who says so knows it", 0, 2 << 30, workerLimits{2 << 30, maxSlots}},
	} {
		if got := workerLimitsFor(c.available, c.wanted); got != c.want {
			t.Errorf("%s: %s: got %v, want %v", name, c.reason, got, c.want)
		}
	}
}

func TestMemoryOfAControlGroup(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		list   string
		files  map[string]string
		want   int64
	}{
		"version 2":     {"what Kubernetes has", "0::/a/b\n", map[string]string{"a/b/memory.max": "512\n", "a/memory.max": "max\n"}, 512},
		"above":         {"a pod's limit is above its containers'", "0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "256\n"}, 256},
		"the container": {"its root is mounted, its name is of another tree", "0::/kubepods/x\n", map[string]string{"memory.max": "512\n"}, 512},
		"version 1":     {"older machines", "9:cpu:/\n4:memory:/a\n0::/\n", map[string]string{"memory/a/memory.limit_in_bytes": "128\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}, 128},
		"none":          {"a machine", "0::/\n", map[string]string{"memory.max": "max\n"}, 0},
		"no groups":     {"another system", "", nil, 0},
		"nonsense":      {"nobody knows", "x\n0::/../..\n", map[string]string{"memory.max": "lots"}, 0},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list := filepath.Join(t.TempDir(), "cgroup")
		if err := os.WriteFile(list, []byte(c.list), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := cgroupMemoryLimit(list, root); got != c.want {
			t.Errorf("%s: %s: got %d, want %d", name, c.reason, got, c.want)
		}
	}
}
