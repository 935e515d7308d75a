//go:build !unix

package source

// nonBlocking is nothing where no file can be a pipe.
const nonBlocking = 0
