package attack

import (
	"testing"

	"operetta.dev/test/harness"
)

func TestMain(m *testing.M) {
	harness.RunTests(m, harness.Setup{Administrators: "an attack has to fail although nothing is refused to the operator"})
}
