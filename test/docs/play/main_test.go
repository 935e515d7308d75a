package play

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"operetta.dev/test/internal/testcache"
)

// root is the folder of the repository.
const root = "../../.."

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("play: skipped, it needs a control plane")
		return
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "play:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	repository, err := testcache.Look(root)
	if err != nil {
		return 0, err
	}
	code, err := repository.Run(m)
	if playground.process != nil {
		end(playground.process)
	}
	return code, err
}
