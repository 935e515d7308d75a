package rights

import (
	"testing"

	"operetta.dev/test/harness"
)

const fixtures = "test/e2e/packages"

func TestMain(m *testing.M) {
	harness.RunTests(m, harness.Setup{})
}
