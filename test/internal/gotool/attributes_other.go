//go:build !linux

package gotool

import "syscall"

// attributes put a command into a process group of its own, so that a signal reaches its compilers.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
