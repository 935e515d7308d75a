package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestWorkersThatExamineMayHaveAQuarterOfWhatThereIs(t *testing.T) {
	maxSlots := max(minWorkers, runtime.GOMAXPROCS(0))
	for name, c := range map[string]struct {
		reason            string
		available, wanted int64
		want              workerLimits
	}{
		"no limit":      {"a machine", 0, 0, workerLimits{maxWorkerMemory, maxSlots}},
		"a small one":   {"the usual container", 512 << 20, 0, workerLimits{128 << 20, 1}},
		"a tiny one":    {"less would examine nothing", 64 << 20, 0, workerLimits{minWorkerMemory, 1}},
		"a large one":   {"as many as there is room for", 12 << 30, 0, workerLimits{maxWorkerMemory, min(3, maxSlots)}},
		"wanted":        {"who says so knows it", 1 << 30, 128 << 20, workerLimits{128 << 20, min(2, maxSlots)}},
		"wanted freely": {"who says so knows it", 0, 2 << 30, workerLimits{2 << 30, maxSlots}},
	} {
		if got := workerLimitsFor(c.available, c.wanted); got != c.want {
			t.Errorf("%s: %s: got %v, want %v", name, c.reason, got, c.want)
		}
	}
}

// TestAllProcessesTogetherStayWithinTheLimit: otherwise the system kills one of them, and perhaps the
// operator.
func TestAllProcessesTogetherStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	for _, available := range []int64{512 << 20, 1 << 30, 2 << 30, 8 << 30, 64 << 30} {
		for _, workers := range []int{1, 2, 3} {
			f, examining := evaluationFlags{workers: workers}, workerLimitsFor(available, 0)
			evaluating := workers // while nobody examines
			if workers > 1 {
				evaluating-- // one has lent its room
			}
			all := max(int64(evaluating)*f.memoryFor(available)+examining.all(), int64(workers)*f.memoryFor(available))
			if reserved := f.reserved(available, examining); all > reserved || available-reserved < available/4 {
				t.Errorf("of %d MiB, %d workers may take %d, of %d that are reserved", available>>20, workers, all>>20, reserved>>20)
			}
		}
	}
}

func TestHeapIsLimitedByTheControlGroupUnlessAPersonSaysOtherwise(t *testing.T) {
	const none = math.MaxInt64
	for name, c := range map[string]struct {
		env       string
		available int64
		want      int64
	}{
		"a control group":       {"", 512 << 20, 256 << 20},
		"a small control group": {"", 200 << 20, 50 << 20},
		"no limit":              {"", 0, none},
		"GOMEMLIMIT is set":     {"300MiB", 512 << 20, none},
		"GOMEMLIMIT turned off": {"off", 512 << 20, none},
	} {
		t.Run(name, func(t *testing.T) {
			before := debug.SetMemoryLimit(none)
			defer debug.SetMemoryLimit(before)
			t.Setenv("GOMEMLIMIT", c.env)
			if c.env == "" {
				_ = os.Unsetenv("GOMEMLIMIT") // t.Setenv restores it
			}
			limitHeap(c.available, 256<<20)
			if got := debug.SetMemoryLimit(-1); got != c.want {
				t.Errorf("the limit is %d, want %d", got, c.want)
			}
		})
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
