// Package live holds the tests that run the whole demo, as `make demo` and `make run` do:
// that it gets there, what it says when it does not, and that nothing of it is left.
package live
