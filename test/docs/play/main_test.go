package play

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// root is the folder of the repository.
const root = "../../.."

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("play: skipped, it needs a control plane")
		return
	}
	code := m.Run()
	if playground.process != nil {
		end(playground.process)
	}
	os.Exit(code)
}
