//go:build unix

package source

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// nonBlocking makes opening a pipe return immediately.
const nonBlocking = syscall.O_NONBLOCK

// checkOwner errors unless a file belongs to the user of this process.
func checkOwner(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner is not known", info.Name())
	}
	if uid := os.Geteuid(); int(stat.Uid) != uid {
		return fmt.Errorf("it belongs to user %d, and this process is user %d", stat.Uid, uid)
	}
	return nil
}
