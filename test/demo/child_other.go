//go:build !linux

package main

import "syscall"

// ofMainThread keeps a terminal's Ctrl-C from a child: it is ended in order. Only
// Linux can also end it when this process is killed.
func ofMainThread() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// endWithParent does nothing: only Linux can tell.
func endWithParent() {}
