//go:build unix

package source

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ownedByUser errors unless a file belongs to the user of this process.
func ownedByUser(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: nobody knows whose it is", info.Name())
	}
	if uid := os.Geteuid(); int(stat.Uid) != uid {
		return fmt.Errorf("it belongs to user %d, and this process is user %d", stat.Uid, uid)
	}
	return nil
}
