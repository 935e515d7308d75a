//go:build !race

package reconcile_test

// stride is how many writes a sweep goes on from one plan to the next.
const stride = 1
