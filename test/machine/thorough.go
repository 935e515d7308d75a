package machine

import "testing"

// Thorough marks a test of the operator as a process that takes long, and that repeats in a larger case, or with another
// package, what shorter tests say as well. In test/stages.sh, the stage e2e leaves marked tests out, so that `make test`
// takes minutes, and the stage long runs them. Whoever asks for such a test by its name gets it.
func Thorough(t testing.TB) { t.Helper() }
