package main

import "syscall"

// mainThreadAttributes makes the kernel kill a child when the thread that started it ends,
// which for the main thread is when this process does, even by SIGKILL. A process
// group of its own keeps a terminal's Ctrl-C from it: it is ended in order.
func mainThreadAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// exitWithParent makes the kernel end this process in order when its parent, which is
// make, is killed.
func exitWithParent() {
	// It cannot fail: the signal is one.
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0)
	_ = errno
}
