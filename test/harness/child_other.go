//go:build !linux

package harness

import "syscall"

// killedWithParent does nothing: only Linux can tell.
func killedWithParent() *syscall.SysProcAttr { return nil }
