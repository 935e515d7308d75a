//go:build !linux

package child

import "syscall"

// attributes put a process into a group of its own, to which signals can be sent. Only Linux ties its life to
// that of its parent.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
