//go:build race

package reconcile_test

// stride is how many writes a sweep goes on from one plan to the next. With the
// race detector a plan takes ten times as long, and what it looks for shows in a
// few of them; `make test` runs every plan without it.
const stride = 7
