//go:build !race

package machine

// detectsRaces tells whether the race detector watches this process.
const detectsRaces = false
