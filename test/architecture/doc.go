// Package architecture holds the tests of how the source is put together: which
// package may import which, that the engine knows no particular operator, and the size
// and documentation of what is written. They read the source and need no linter; `make
// lint` checks more, and the same rules of imports where an editor can show them.
package architecture
