//go:build unix

package source

import "syscall"

// nonBlocking makes opening a pipe return immediately.
const nonBlocking = syscall.O_NONBLOCK
