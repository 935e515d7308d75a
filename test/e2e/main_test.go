package e2e

import (
	"testing"

	"operetta.dev/test/harness"
)

func TestMain(m *testing.M) {
	harness.RunTests(m, harness.Setup{
		Packages: func() []string { return append(allFixtures(), harness.PackageDir("webapp")) },
	})
}
