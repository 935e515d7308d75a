//go:build unix

package source

import "syscall"

// nonBlocking makes opening a pipe return at once.
const nonBlocking = syscall.O_NONBLOCK
