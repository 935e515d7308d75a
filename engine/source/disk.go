package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
)

const (
	// maxFileSize bounds a CUE file, in bytes.
	maxFileSize = 1 << 20
	// maxModuleFile bounds the declaration of a module, in bytes: CUE evaluates it to read it.
	maxModuleFile = 16 << 10
	// maxTotalSize bounds all files of a package together, in bytes, and maxFiles their number.
	maxTotalSize = 8 << 20
	maxFiles     = 1000
	// maxReadSize bounds the CUE files that are read to find those, in bytes. Files in parent
	// folders have to be read, because they belong to the package if they have its name.
	maxReadSize = 64 << 20
	// maxDirEntries bounds the number of entries of a folder, CUE files or not.
	maxDirEntries = 10_000
	// maxFileName bounds the name of a file, in bytes: each folder in it is looked at.
	maxFileName = 500
	// maxImports bounds the number of imports that are followed.
	maxImports = 10_000
)

// A LimitError is the error of a file or folder that is not read, because it is not a regular
// file or exceeds a limit.
type LimitError struct {
	// Name is the file or folder, relative to the root of the module.
	Name string
	// Problem says why it is not read.
	Problem string
}

// Error returns the name and the problem.
func (e *LimitError) Error() string { return e.Name + ": " + e.Problem }

// A disk is the file system below a folder. It opens only regular files, follows only links that
// stay below the folder, and reads no more than the limits: a user who can write to the folder
// of a package must not be able to block the reading process or exhaust its memory.
type disk struct {
	root *os.Root
	// stats are the files and folders that were read or looked for, nil for what is missing.
	stats map[string]fs.FileInfo
}

// openDisk opens a folder. It errors if it is not a folder.
func openDisk(dir string) (*disk, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &disk{root: root, stats: map[string]fs.FileInfo{}}, nil
}

// Open opens a regular file or a folder.
func (d *disk) Open(name string) (fs.File, error) {
	info, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if err := checkRegular(name, info); err != nil {
			return nil, err
		}
	}
	f, _, err := openSame(d.root, name, info)
	switch {
	case errors.Is(err, errReplaced):
		return nil, &LimitError{name, err.Error()}
	case err != nil:
		return nil, err
	}
	return f, nil
}

var errReplaced = errors.New("it was replaced while it was read")

// openSame opens the file that info describes. It errors with errReplaced when there is another
// one by now.
func openSame(root *os.Root, name string, info fs.FileInfo) (*os.File, fs.FileInfo, error) {
	// If a pipe has replaced the file, opening it must not wait for a writer.
	f, err := root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = errReplaced
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, opened, nil
}

// Stat describes a file or folder, or the target of a link.
func (d *disk) Stat(name string) (fs.FileInfo, error) {
	info, err := d.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		d.stats[d.missing(name)] = nil
	}
	if link, wrong := d.root.Lstat(name); err != nil && wrong == nil && link.Mode()&fs.ModeSymlink != 0 {
		return nil, &LimitError{name, "it is a link that leads out of the folder of the module, or to nothing"}
	}
	if err != nil {
		return nil, err
	}
	d.stats[name] = info
	return info, nil
}

// missing returns the folder nearest to the root that does not exist and in which a file would be, or the
// file. As long as that is missing, so is the file. Most imports are looked for in folders that no module has.
func (d *disk) missing(name string) string {
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if _, err := d.root.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		name = at
	}
	return name
}

// ReadFile returns the content of a regular file.
func (d *disk) ReadFile(name string) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkRegular(name, info)
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if len(data) > maxFileSize {
		return nil, tooLargeError(name, maxFileSize)
	}
	return data, err
}

// ReadDir returns the entries of a folder, sorted by name.
func (d *disk) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.ErrUnsupported}
	}
	entries, err := dir.ReadDir(maxDirEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxDirEntries {
		return nil, &LimitError{name, fmt.Sprintf("the folder has more than %d entries", maxDirEntries)}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// checkRegular errors unless a file is a regular one.
func checkRegular(name string, info fs.FileInfo) error {
	what := "it is not a regular file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "it is a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "it is a named pipe"
	case mode&fs.ModeDevice != 0:
		what = "it is a device"
	case mode&fs.ModeSocket != 0:
		what = "it is a socket"
	}
	return &LimitError{name, what + ", and only regular files are read"}
}

func tooLargeError(name string, limit int) error {
	return &LimitError{name, fmt.Sprintf("it has more than %d bytes", limit)}
}
