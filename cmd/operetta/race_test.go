//go:build race

package main

// raced says that the race detector is there. Its own memory counts with the limit of a
// worker, and it ends a process that has no more of it with an exit code of its own.
const raced = true
