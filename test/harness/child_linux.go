package harness

import "syscall"

// killedWithParent makes the kernel kill a child process when the thread that started it ends, and so
// also when this process is killed.
func killedWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
