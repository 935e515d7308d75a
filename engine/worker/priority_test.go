package worker_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"operetta.dev/test/machine"
)

func TestEachThreadOfAWorkerHasALowerPriorityThanTheOperator(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads have a priority of their own, and /proc tells it, on Linux alone")
	}
	t.Parallel()
	pool := newPool(t, 1)
	if _, err := pool.Package(compile(t, "")).Evaluate(t.Context(), session("town", nil)); err != nil {
		t.Fatal(err)
	}
	machine.Eventually(t, "a worker that does nothing", func() bool { return len(pool.Idle()) == 1 })
	own := priorities(t, os.Getpid())[0]
	threads := priorities(t, pool.Idle()[0])
	if len(threads) < 2 {
		t.Fatalf("the worker has %d threads: garbage is collected on another", len(threads))
	}
	want := min(own+5, 19)
	for _, got := range threads {
		if got != want {
			t.Errorf("of the threads of the worker, one has the nice value %d, not %d: %v", got, want, threads)
		}
	}
}

// priorities returns the nice value of each thread of a process; see proc_pid_stat(5).
func priorities(t *testing.T, pid int) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // the thread has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		// The name of the program is in parentheses, and may have spaces. The nice value is the 19th field.
		fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
		var nice int
		if _, err := fmt.Sscan(string(fields[16]), &nice); err != nil {
			t.Fatal(err)
		}
		out = append(out, nice)
	}
	return out
}
