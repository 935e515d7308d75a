package docs

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if playground.child != nil {
		playground.child.end()
	}
	os.Exit(code)
}

// onControlPlane skips a test that needs a control plane where none is wanted.
func onControlPlane(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
}
