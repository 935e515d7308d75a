//go:build !race

package lifecycle_test

// stride is how many writes a sweep goes on from one plan to the next.
const stride = 1
