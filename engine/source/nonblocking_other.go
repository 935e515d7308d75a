//go:build !unix

package source

// nonBlocking is zero on systems where no file can be a pipe.
const nonBlocking = 0
