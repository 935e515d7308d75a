package worker

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// limitDataSegment makes the system refuse memory beyond a number of bytes. It limits the data
// segment and not the address space, of which Go reserves more than a gigabyte that it never uses.
func limitDataSegment(bytes int64) error {
	// If the machine runs out of memory, the system should kill this process and not its parent.
	// Where the score cannot be set, the limit below still holds.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_DATA, &l); err != nil {
		return err
	}
	l.Cur = min(l.Max, uint64(max(bytes, 0)))
	l.Max = l.Cur
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &l)
}

// lowerPriority makes this process yield the processors to the operator, which serves everybody, while it computes for one resource.
// Linux has a priority for each thread. That of a process group is set for all of its threads, and those that are started later
// inherit it. A process that leads no group leaves the priority alone, because it would lower that of its parent as well.
func lowerPriority() {
	if syscall.Getpgrp() != syscall.Getpid() {
		return
	}
	if raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, 20-raw+niceness) // the system call returns 20 less the nice value
	}
}

// ProcessorTime returns how much processor time this process has used.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it errors only if its arguments are wrong
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// OwnProcessGroup makes a command the leader of a process group, and its cancellation kill the group.
func OwnProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
