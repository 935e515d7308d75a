package harness

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cgroupRoots are the folders of the memory controller in control groups of version 1 and version 2.
var cgroupRoots = []struct{ dir, limit string }{
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	{"/sys/fs/cgroup", "memory.max"},
}

// LimitMemory puts the operator into a control group with a memory limit in bytes, as a container
// does; the kernel kills the operator beyond it. It reports whether it succeeded, which needs the
// rights of root. PeakMemory works in any case.
func (o *Operator) LimitMemory(bytes int64) bool {
	o.T.Helper()
	for _, g := range cgroupRoots {
		if _, err := os.Stat(filepath.Join(g.dir, "cgroup.procs")); err != nil {
			continue
		}
		dir := filepath.Join(g.dir, fmt.Sprintf("operetta-test-%d", o.PID()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		o.T.Cleanup(func() { o.removeCgroup(dir) })
		if os.WriteFile(filepath.Join(dir, g.limit), []byte(strconv.FormatInt(bytes, 10)), 0o600) != nil {
			continue
		}
		return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(o.PID())), 0o600) == nil
	}
	return false
}

// removeCgroup kills the operator and removes its control group, which is possible once its last
// process is gone.
func (o *Operator) removeCgroup(dir string) {
	o.Kill()
	for deadline := time.Now().Add(5 * time.Second); os.Remove(dir) != nil; {
		if time.Now().After(deadline) {
			o.T.Errorf("the control group %s cannot be removed", dir)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// PeakMemory returns the peak memory of the operator's process in bytes, or 0 if the system does not
// report it.
func (o *Operator) PeakMemory() int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", o.PID()))
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// CPU returns the processor time that the operator's process has used, or 0 if the system does not
// report it.
func (o *Operator) CPU() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.PID()))
	if err != nil {
		return 0
	}
	// The name of the process, in parentheses, may contain spaces. The text after it has the user and
	// the system time, in hundredths of a second, as fields 12 and 13.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Running reports whether the operator's process is running.
func (o *Operator) Running() bool {
	select {
	case <-o.Ended:
		return false
	default:
		return true
	}
}
