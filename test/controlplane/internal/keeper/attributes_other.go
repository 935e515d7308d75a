//go:build !linux

package keeper

import "syscall"

// childAttributes has no parent-death signal to ask for here: children are
// killed when the keeper sees its owner end, but not when it is killed itself.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
