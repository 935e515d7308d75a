package e2e

import (
	"testing"

	"operetta.dev/test/harness"
)

// site is the namespace of a test, with what only the tests of this package ask of one.
type site struct{ *harness.Site }

func newSite(t *testing.T) *site {
	t.Helper()
	return &site{harness.NewSite(t)}
}

// small is a package of one test, with what only the tests of this package do to one.
type small struct{ *harness.Small }

func newSmall(t *testing.T, name, body string) *small {
	t.Helper()
	return &small{harness.NewSmall(t, name, body)}
}
