//go:build race

package main

// raceEnabled says that the race detector runs. Its own memory counts towards the limit of a
// worker, and it ends a process that exceeds the limit with an exit code of its own.
const raceEnabled = true
