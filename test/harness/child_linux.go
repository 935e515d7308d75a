package harness

import "syscall"

// killedWithParent makes the kernel kill a child when the thread that started it
// ends, so also when this process is killed.
func killedWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
