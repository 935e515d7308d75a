package harness

import "os"

// longEnv has tests take their time that otherwise look for a moment only.
const longEnv = "OPERETTA_TEST_LONG"

// Long reports whether tests may take minutes.
func Long() bool { return os.Getenv(longEnv) != "" }
