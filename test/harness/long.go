package harness

import "os"

// longEnv is the variable that makes some tests run for minutes instead of seconds.
const longEnv = "OPERETTA_TEST_LONG"

// Long reports whether tests should run at full length.
func Long() bool { return os.Getenv(longEnv) != "" }
