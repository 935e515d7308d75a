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
	endOfTests, err := testcache.DependOnRepository(root)
	if err != nil {
		return 0, err
	}
	code := m.Run()
	if playground.process != nil {
		end(playground.process)
	}
	return code, endOfTests()
}
