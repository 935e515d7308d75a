package attack

import (
	"testing"

	"operetta.dev/test/harness"
)

func TestMain(m *testing.M) { harness.RunTests(m, harness.Setup{}) }
